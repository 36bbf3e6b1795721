"""Configs that `StreamsConfig` and `KafkaStreams` refuse in combination, or for more than their type.

Each check uses the default instead of a value that is reported as invalid.
"""

import re
from collections.abc import Iterator

from headwater.compiler.configs.client_combinations import find_client_combinations
from headwater.compiler.configs.clients import Client, StartedApplication
from headwater.compiler.configs.refusals import Refusal, name_exception
from headwater.compiler.java.config_values import INT, parse_boolean, parse_whole, trim_text, utf16_length
from headwater.model.versions import KafkaStreamsVersion

_TAG = "client.tag."
_TAGS = "rack.aware.assignment.tags"
_MOST_TAGS, _LONGEST_TAG, _LONGEST_TAG_VALUE = 5, 20, 30
_INT_MAX = 2**31 - 1
_LARGEST_PORT = 2**16 - 1
IN_FLIGHT = "max.in.flight.requests.per.connection"
_MOST_IN_FLIGHT = 5
_CONSUMERS = ("consumer.", "main.consumer.", "restore.consumer.", "global.consumer.")
_PUSH = "enable.metrics.push"
_SERVERS = "a comma-separated list of host:port"
_TRANSACTION_TIMEOUT = 10_000
"""`StreamsConfig.DEFAULT_TRANSACTION_TIMEOUT`."""
_COMMIT_INTERVAL = 100
"""`StreamsConfig.EOS_DEFAULT_COMMIT_INTERVAL_MS`."""

_CHECKS_METRICS = KafkaStreamsVersion(4, 0, 0)
_CHECKS_EACH_CONSUMER = KafkaStreamsVersion(4, 2, 0)
_REFUSES_EMPTY_TAGS = KafkaStreamsVersion(4, 3, 0)
_HOST_PORT = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_OLD_HOST_PORT = re.compile(r"[^\n\r\u0085\u2028\u2029]*?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_WITH_OLD_HOST_PORT = ("3.7", "3.9")
"""`Utils.HOST_PORT_PATTERN` is the same in 3.8 and 4.0, and in 3.7 and 3.9."""


def find_combinations(application: StartedApplication) -> Iterator[Refusal]:
    """Yield what is refused although each value is valid."""
    yield from _check_tags(application)
    yield from _check_metrics_push(application)
    yield from _check_addresses(application)
    yield from _check_batch_size(application)
    if application.exactly_once:
        yield from _check_transaction_timeout(application)
        yield from _check_in_flight(application)
    yield from find_client_combinations(application)


def _check_tags(application: StartedApplication) -> Iterator[Refusal]:
    """`StreamsConfig#validateRackAwarenessConfiguration`."""
    # a key that is only the prefix counts as no tag
    tags = {
        key.removeprefix(_TAG): text
        for key, text in application.config.items()
        if key.startswith(_TAG) and key != _TAG
    }
    if len(tags) > _MOST_TAGS:
        yield Refusal(
            key=_TAG + list(tags)[_MOST_TAGS],
            summary=f"There are more than {_MOST_TAGS} client tags.",
            expected=f"at most {_MOST_TAGS} keys `{_TAG}…`",
            found=str(len(tags)),
            fix="Remove the others.",
        )
    named = application.streams(_TAGS)
    for tag in named if isinstance(named, list) else ():
        if tag not in tags or (not tag and application.version >= _REFUSES_EMPTY_TAGS):
            yield Refusal(
                key=_TAGS,
                summary=f"`{_TAGS}` names a client tag that has no value.",
                expected=f"`{_TAG}{tag}`" if tag else "names that are not empty",
                found=f"`{tag}`" if tag else "an empty name",
                fix=f"Add `{_TAG}{tag}`, or remove `{tag}` from `{_TAGS}`." if tag else "Remove the comma.",
            )
    for tag, value in tags.items():
        yield from _check_tag(application, tag, value)


def _check_tag(application: StartedApplication, tag: str, value: str) -> Iterator[Refusal]:
    key = _TAG + tag
    if application.version >= _REFUSES_EMPTY_TAGS and not trim_text(tag):
        yield Refusal(
            key=key,
            summary=f"`{_TAG}` has no name.",
            expected=f"`{_TAG}NAME`",
            found=f"`{key}`",
            fix="Name it.",
        )
    if application.version >= _REFUSES_EMPTY_TAGS and not trim_text(value):
        expected = "text that is not empty"
        yield Refusal.of_value(key, value, expected)
    for what, text, most in (("name", tag, _LONGEST_TAG), ("value", value, _LONGEST_TAG_VALUE)):
        if utf16_length(text) > most:
            yield Refusal(
                key=key,
                summary=f"The {what} of a client tag is too long.",
                expected=f"at most {most} characters",
                found=f"{utf16_length(text)} characters",
                fix="Shorten it.",
            )


def _check_metrics_push(application: StartedApplication) -> Iterator[Refusal]:
    """`StreamsConfig#verifyClientTelemetryConfigs`: it reads the prefixed configs of three clients only."""
    if application.version < _CHECKS_METRICS or application.streams(_PUSH) is not True:
        return
    prefixed = {
        prefix: parse_boolean(trim_text(application.config[prefix + _PUSH]))
        for prefix in ("main.consumer.", "consumer.", "admin.")
        if prefix + _PUSH in application.config
    }
    off = [prefix for prefix in ("main.consumer.", "admin.") if prefixed.get(prefix) is False]
    if not off and list(prefixed) == ["consumer."] and prefixed["consumer."] is False:
        off = ["consumer."]
    if off:
        keys = " and ".join(f"`{prefix}{_PUSH}`" for prefix in off)
        yield Refusal(
            key=off[0] + _PUSH,
            summary=f"`{_PUSH}` is on for the application, but not for its clients.",
            expected=f"{keys}: `true`, or `{_PUSH}`: `false`",
            found=f"{keys}: `false`",
            fix=f"Remove {keys}, or set `{_PUSH}` to `false`.",
        )


def _check_addresses(application: StartedApplication) -> Iterator[Refusal]:
    """`HostInfo#buildFromEndpoint` and `ClientUtils#parseAndValidateAddresses`."""
    own = trim_text(application.config.get("application.server", ""))
    if own and not _is_address(own, application.version, most=_INT_MAX):
        yield Refusal.of_value("application.server", own, "host:port")
    key = "bootstrap.servers"
    servers = application.streams(key)
    if key in application.config and isinstance(servers, list) and not any(servers):
        yield Refusal.of_value(key, application.config[key], _SERVERS)
    for server in servers if isinstance(servers, list) else ():
        if server and not _is_address(server, application.version, most=_LARGEST_PORT):
            yield Refusal.of_value(key, server, _SERVERS)


def _is_address(text: str, version: KafkaStreamsVersion, most: int) -> bool:
    pattern = _OLD_HOST_PORT if version.release in _WITH_OLD_HOST_PORT else _HOST_PORT
    found = pattern.fullmatch(text)
    port = parse_whole(found[2], INT) if found else None
    return port is not None and port <= most


def _check_batch_size(application: StartedApplication) -> Iterator[Refusal]:
    """`StreamsConfig#getMainConsumerConfigs`: it reads the texts without trimming."""
    key = "topic.segment.bytes"
    batch = application.clients[Client.PRODUCER].get("batch.size")
    if key not in application.config or batch is None or batch.key is None:
        return
    for name, text in ((key, application.config[key]), (batch.key, batch.text)):
        if parse_whole(text, INT) is None:
            yield Refusal.of_value(
                name,
                text,
                "a whole number without blanks, as both sizes are set",
                why=name_exception("NumberFormatException"),
            )
    segment, size = parse_whole(application.config[key], INT), parse_whole(batch.text, INT)
    if segment is not None and size is not None and segment < size:
        yield Refusal(
            key=key,
            summary=f"`{key}` is smaller than `{batch.key}`.",
            expected=f"at least {size}",
            found=str(segment),
            fix=f"Set `{key}` to at least {size}, or lower `{batch.key}`.",
            why=name_exception("IllegalArgumentException"),
        )


def _check_transaction_timeout(application: StartedApplication) -> Iterator[Refusal]:
    """`StreamsConfig#verifyEOSTransactionTimeoutCompatibility`: it reads the prefixed config only."""
    key, commit = "producer.transaction.timeout.ms", "commit.interval.ms"
    given = application.config.get(key)
    timeout = _TRANSACTION_TIMEOUT if given is None else parse_whole(trim_text(given), INT)
    interval = application.streams(commit) if commit in application.config else _COMMIT_INTERVAL
    if timeout is not None and isinstance(interval, int) and timeout < interval:
        yield Refusal(
            key=commit if commit in application.config else key,
            summary=f"`{commit}` is longer than the transaction timeout.",
            expected=f"at most {timeout} (`{key}`)",
            found=str(interval),
            fix=f"Lower `{commit}`, or raise `{key}`.",
            why=name_exception("IllegalArgumentException"),
        )


def _check_in_flight(application: StartedApplication) -> Iterator[Refusal]:
    """`StreamsConfig#verifyMaxInFlightRequestPerConnection`: it also reads the configs of consumers."""
    others = _CONSUMERS if application.version >= _CHECKS_EACH_CONSUMER else _CONSUMERS[:1]
    for key in (prefix + IN_FLIGHT for prefix in others):
        if key in application.config:
            number = parse_whole(trim_text(application.config[key]), INT)
            if number is None or number > _MOST_IN_FLIGHT:
                expected = f"a whole number of at most {_MOST_IN_FLIGHT} with exactly once"
                yield Refusal.of_value(key, application.config[key], expected)
