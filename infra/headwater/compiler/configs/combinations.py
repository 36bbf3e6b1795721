"""Configs that Kafka Streams and its clients refuse in combination, or for more than their type.

Each check uses the default instead of a value that is reported as invalid. Sources: `StreamsConfig`,
`KafkaStreams`, and the constructors of `ConsumerConfig`, `Heartbeat`, `ProducerConfig` and `KafkaProducer`.
"""

import re
from collections.abc import Iterator

from headwater.compiler.configs.clients import THREAD_SUFFIX, Client, StartedApplication
from headwater.compiler.configs.table import client_rules
from headwater.compiler.configs.values import Refusal, name_exception
from headwater.compiler.java.config_values import (
    INT,
    equals_ignore_case,
    parse_boolean,
    parse_whole,
    trim_text,
    utf16_length,
)
from headwater.model.problems import shorten_text
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
_IDEMPOTENCE = "enable.idempotence"
_TRANSACTIONAL_ID = "transactional.id"
_PROTOCOL = "group.protocol"
_ASSIGNOR = "partition.assignment.strategy"
_AUTO_COMMIT = "enable.auto.commit"
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_SASL = ("SASL_PLAINTEXT", "SASL_SSL")

_REFUSES_IN_FLIGHT = KafkaStreamsVersion(4, 0, 0)
_HAS_STREAMS_PROTOCOL = KafkaStreamsVersion(4, 1, 0)


def find_combinations(application: StartedApplication) -> Iterator[Refusal]:
    """Yield what is refused although each value is valid."""
    yield from _check_tags(application)
    yield from _check_metrics_push(application)
    yield from _check_addresses(application)
    yield from _check_batch_size(application)
    if application.exactly_once:
        yield from _check_transaction_timeout(application)
        yield from _check_in_flight(application)
    yield from _check_clients(application)


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
    named = application.streams_value(_TAGS)
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
    if application.version < _CHECKS_METRICS or application.streams_value(_PUSH) is not True:
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
    servers = application.streams_value(key)
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
    interval = application.streams_value(commit) if commit in application.config else _COMMIT_INTERVAL
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


def _check_clients(application: StartedApplication) -> Iterator[Refusal]:
    """Yield what a client refuses although each value is valid."""
    yield from _check_main_consumer(application)
    yield from _check_producer(application)
    for client in Client:
        yield from _check_sasl(application, client)


def _check_main_consumer(application: StartedApplication) -> Iterator[Refusal]:
    main = Client.MAIN
    is_streams = application.version >= _HAS_STREAMS_PROTOCOL and equals_ignore_case(
        str(application.streams_value("group.protocol")), "streams"
    )
    member = application.clients[main].get("group.instance.id")
    if member is not None and member.key is not None:
        text = trim_text(member.text.removesuffix(THREAD_SUFFIX))
        if is_streams:
            yield Refusal(
                key=member.key,
                summary="The group protocol `streams` has no static members.",
                expected=f"no `{member.key}`, or `group.protocol`: `classic`",
                found=f"`{text}`",
                fix=f"Remove `{member.key}`, or set `group.protocol` to `classic`.",
            )
        elif not _TOPIC_NAME.fullmatch(trim_text(member.text)):
            yield Refusal.of_value(
                member.key,
                text,
                "at most 247 letters, digits, `.`, `_` and `-`",
                why=name_exception("InvalidConfigurationException"),
            )
    if not is_streams and str(application.client_value(main, _PROTOCOL)).lower() == "classic":
        yield from _check_heartbeats(application)
    for client in (Client.RESTORE, Client.GLOBAL):
        yield from _check_auto_commit(application, client)
    for client in (Client.MAIN, Client.RESTORE, Client.GLOBAL):
        yield from _check_group_protocol(application, client)


def _check_heartbeats(application: StartedApplication) -> Iterator[Refusal]:
    """`Heartbeat`, which only the classic protocol has."""
    name, limit = "heartbeat.interval.ms", "session.timeout.ms"
    interval, session = (
        application.client_number(Client.MAIN, name),
        application.client_number(Client.MAIN, limit),
    )
    if interval < 0:
        key = application.config_key(Client.MAIN, name) or name
        why = name_exception("IllegalArgumentException", "The main consumer")
        yield Refusal.of_value(key, str(interval), "a whole number of at least 0", why=why)
    elif interval >= session:
        yield Refusal(
            key=application.config_key(Client.MAIN, name, limit) or name,
            summary=f"`{name}` of the main consumer is not shorter than `{limit}`.",
            expected=f"less than {session} (`{limit}`)",
            found=str(interval),
            fix=f"Lower `{name}`, or raise `{limit}`.",
            why=name_exception("IllegalArgumentException", "The main consumer"),
        )


def _check_auto_commit(application: StartedApplication, client: Client) -> Iterator[Refusal]:
    """`ConsumerConfig#maybeOverrideEnableAutoCommit`: these consumers have no group."""
    given = application.clients[client].get(_AUTO_COMMIT)
    if given and given.key and application.client_value(client, _AUTO_COMMIT) is True:
        why = name_exception("InvalidConfigurationException", f"The {client}")
        yield Refusal.of_value(given.key, given.text, "`false`", why=why)


def _check_group_protocol(application: StartedApplication, client: Client) -> Iterator[Refusal]:
    """`ConsumerConfig#checkUnsupportedConfigsPostProcess`."""
    protocol = str(application.client_value(client, _PROTOCOL)).lower()
    refused = client_rules(application.version.release).unsupported.get(protocol, ())
    if client is Client.MAIN and _ASSIGNOR in refused:  # Kafka Streams sets its own
        yield Refusal.of_value(
            application.config_key(client, _PROTOCOL) or _PROTOCOL,
            protocol,
            "`classic`",
            why=name_exception("ConfigException", "The main consumer"),
        )
    for name in refused:
        given = application.clients[client].get(name)
        if given is not None and given.key is not None and trim_text(given.text):
            yield Refusal(
                key=given.key,
                summary=f"`{given.key}` cannot be combined with the group protocol `{protocol}`.",
                expected=f"no `{given.key}`",
                found=f"`{shorten_text(given.text)}`",
                fix=f"Remove `{given.key}`.",
                why=name_exception("ConfigException", f"The {client}"),
            )


def _check_producer(application: StartedApplication) -> Iterator[Refusal]:
    """`ProducerConfig#postProcessParsedConfig` and `KafkaProducer#configureDeliveryTimeout`."""
    producer = Client.PRODUCER
    given = application.clients[producer]
    yield from _check_idempotence(application)
    timeout = application.client_number(producer, "delivery.timeout.ms")
    linger = min(application.client_number(producer, "linger.ms"), _INT_MAX)
    least = min(linger + application.client_number(producer, "request.timeout.ms"), _INT_MAX)
    if "delivery.timeout.ms" in given and timeout < least:
        key = application.config_key(producer, "delivery.timeout.ms") or "delivery.timeout.ms"
        yield Refusal(
            key=key,
            summary=f"`{key}` is shorter than `linger.ms` and `request.timeout.ms` together.",
            expected=f"at least {least}",
            found=str(timeout),
            fix=f"Set `{key}` to at least {least}, or lower the others.",
        )
    if application.client_value(producer, "transaction.two.phase.commit.enable") is True and (
        application.exactly_once or "transaction.timeout.ms" in given
    ):
        key = application.config_key(producer, "transaction.two.phase.commit.enable") or ""
        yield Refusal(
            key=key,
            summary=f"`{key}` cannot be combined with a transaction timeout.",
            expected="`false`",
            found="`true`",
            fix=f"Remove `{key}`. Kafka Streams sets a timeout for exactly once.",
        )


def _check_idempotence(application: StartedApplication) -> Iterator[Refusal]:
    """Only a setting of the user makes these an error; the default is switched off without a message."""
    producer, given = Client.PRODUCER, application.clients[Client.PRODUCER]
    is_set = application.exactly_once or _IDEMPOTENCE in given
    is_on = application.exactly_once or application.client_value(producer, _IDEMPOTENCE) is True
    acks, in_flight = (
        application.client_value(producer, "acks"),
        application.client_number(producer, IN_FLIGHT),
    )
    unfit = []
    if application.client_number(producer, "retries") == 0:
        unfit.append(("retries", "0", "at least 1"))
    if acks not in ("all", "-1"):
        unfit.append(("acks", str(acks), "`all`"))
    if in_flight > _MOST_IN_FLIGHT:
        unfit.append((IN_FLIGHT, str(in_flight), f"at most {_MOST_IN_FLIGHT}"))
    needs = "exactly once" if application.exactly_once else "an idempotent producer"
    for name, found, expected in unfit:
        if is_on and (is_set or (name == IN_FLIGHT and application.version >= _REFUSES_IN_FLIGHT)):
            key = application.config_key(producer, name) or name
            yield Refusal(
                key=key,
                summary=f"`{key}` cannot be {found} with {needs}.",
                expected=expected,
                found=found,
                fix=f"Set `{key}` to {expected}, or remove it.",
            )
    own_id = application.config_key(producer, _TRANSACTIONAL_ID)
    if own_id is not None and not application.exactly_once and (not is_on or unfit):
        yield Refusal(
            key=own_id,
            summary=f"`{own_id}` needs an idempotent producer.",
            expected=f"no `{own_id}`: Kafka Streams sets one with `processing.guarantee`: `exactly_once_v2`",
            found=f"`{shorten_text(given[_TRANSACTIONAL_ID].text)}`",
            fix=f"Remove `{own_id}`.",
        )


def _check_sasl(application: StartedApplication, client: Client) -> Iterator[Refusal]:
    """`CommonClientConfigs#postValidateSaslMechanismConfig`."""
    protocol = application.client_value(client, "security.protocol")
    if (
        isinstance(protocol, str)
        and protocol.upper() in _SASL
        and not application.client_value(client, "sasl.mechanism")
    ):
        key = application.config_key(client, "sasl.mechanism") or "sasl.mechanism"
        yield Refusal.of_value(
            key, "", "a SASL mechanism such as `PLAIN`, as `security.protocol` enables SASL"
        )
