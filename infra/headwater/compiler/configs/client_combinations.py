"""Configs that the clients of Kafka Streams refuse in combination, or for more than their type.

Sources: the constructors of `ConsumerConfig`, `Heartbeat`, `ProducerConfig` and `KafkaProducer`.
"""

import re
from collections.abc import Iterator

from headwater.compiler.configs.clients import THREAD_SUFFIX, Client, StartedApplication
from headwater.compiler.configs.refusals import Refusal, name_exception
from headwater.compiler.configs.table import client_rules
from headwater.compiler.java.config_values import equals_ignore_case, trim_text
from headwater.model.problems import shorten_text
from headwater.model.versions import KafkaStreamsVersion

_INT_MAX = 2**31 - 1
_IN_FLIGHT = "max.in.flight.requests.per.connection"
_MOST_IN_FLIGHT = 5
_IDEMPOTENCE = "enable.idempotence"
_TRANSACTIONAL_ID = "transactional.id"
_PROTOCOL = "group.protocol"
_ASSIGNOR = "partition.assignment.strategy"
_AUTO_COMMIT = "enable.auto.commit"
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_SASL = ("SASL_PLAINTEXT", "SASL_SSL")

_REFUSES_IN_FLIGHT = KafkaStreamsVersion(4, 0, 0)
_HAS_STREAMS_PROTOCOL = KafkaStreamsVersion(4, 1, 0)


def find_client_combinations(application: StartedApplication) -> Iterator[Refusal]:
    """Yield what a client refuses although each value is valid."""
    yield from _check_main_consumer(application)
    yield from _check_producer(application)
    for client in Client:
        yield from _check_sasl(application, client)


def _check_main_consumer(application: StartedApplication) -> Iterator[Refusal]:
    main = Client.MAIN
    is_streams = application.version >= _HAS_STREAMS_PROTOCOL and equals_ignore_case(
        str(application.streams("group.protocol")), "streams"
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
    if not is_streams and str(application.client(main, _PROTOCOL)).lower() == "classic":
        yield from _check_heartbeats(application)
    for client in (Client.RESTORE, Client.GLOBAL):
        yield from _check_auto_commit(application, client)
    for client in (Client.MAIN, Client.RESTORE, Client.GLOBAL):
        yield from _check_group_protocol(application, client)


def _check_heartbeats(application: StartedApplication) -> Iterator[Refusal]:
    """`Heartbeat`, which only the classic protocol has."""
    name, limit = "heartbeat.interval.ms", "session.timeout.ms"
    interval, session = application.number(Client.MAIN, name), application.number(Client.MAIN, limit)
    if interval < 0:
        key = application.key(Client.MAIN, name) or name
        why = name_exception("IllegalArgumentException", "The main consumer")
        yield Refusal.of_value(key, str(interval), "a whole number of at least 0", why=why)
    elif interval >= session:
        yield Refusal(
            key=application.key(Client.MAIN, name, limit) or name,
            summary=f"`{name}` of the main consumer is not shorter than `{limit}`.",
            expected=f"less than {session} (`{limit}`)",
            found=str(interval),
            fix=f"Lower `{name}`, or raise `{limit}`.",
            why=name_exception("IllegalArgumentException", "The main consumer"),
        )


def _check_auto_commit(application: StartedApplication, client: Client) -> Iterator[Refusal]:
    """`ConsumerConfig#maybeOverrideEnableAutoCommit`: these consumers have no group."""
    given = application.clients[client].get(_AUTO_COMMIT)
    if given and given.key and application.client(client, _AUTO_COMMIT) is True:
        why = name_exception("InvalidConfigurationException", f"The {client}")
        yield Refusal.of_value(given.key, given.text, "`false`", why=why)


def _check_group_protocol(application: StartedApplication, client: Client) -> Iterator[Refusal]:
    """`ConsumerConfig#checkUnsupportedConfigsPostProcess`."""
    protocol = str(application.client(client, _PROTOCOL)).lower()
    refused = client_rules(application.version.release).unsupported.get(protocol, ())
    if client is Client.MAIN and _ASSIGNOR in refused:  # Kafka Streams sets its own
        yield Refusal.of_value(
            application.key(client, _PROTOCOL) or _PROTOCOL,
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
    timeout = application.number(producer, "delivery.timeout.ms")
    linger = min(application.number(producer, "linger.ms"), _INT_MAX)
    least = min(linger + application.number(producer, "request.timeout.ms"), _INT_MAX)
    if "delivery.timeout.ms" in given and timeout < least:
        key = application.key(producer, "delivery.timeout.ms") or "delivery.timeout.ms"
        yield Refusal(
            key=key,
            summary=f"`{key}` is shorter than `linger.ms` and `request.timeout.ms` together.",
            expected=f"at least {least}",
            found=str(timeout),
            fix=f"Set `{key}` to at least {least}, or lower the others.",
        )
    if application.client(producer, "transaction.two.phase.commit.enable") is True and (
        application.exactly_once or "transaction.timeout.ms" in given
    ):
        key = application.key(producer, "transaction.two.phase.commit.enable") or ""
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
    is_on = application.exactly_once or application.client(producer, _IDEMPOTENCE) is True
    acks, in_flight = application.client(producer, "acks"), application.number(producer, _IN_FLIGHT)
    unfit = []
    if application.number(producer, "retries") == 0:
        unfit.append(("retries", "0", "at least 1"))
    if acks not in ("all", "-1"):
        unfit.append(("acks", str(acks), "`all`"))
    if in_flight > _MOST_IN_FLIGHT:
        unfit.append((_IN_FLIGHT, str(in_flight), f"at most {_MOST_IN_FLIGHT}"))
    needs = "exactly once" if application.exactly_once else "an idempotent producer"
    for name, found, expected in unfit:
        if is_on and (is_set or (name == _IN_FLIGHT and application.version >= _REFUSES_IN_FLIGHT)):
            key = application.key(producer, name) or name
            yield Refusal(
                key=key,
                summary=f"`{key}` cannot be {found} with {needs}.",
                expected=expected,
                found=found,
                fix=f"Set `{key}` to {expected}, or remove it.",
            )
    own_id = application.key(producer, _TRANSACTIONAL_ID)
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
    protocol = application.client(client, "security.protocol")
    if (
        isinstance(protocol, str)
        and protocol.upper() in _SASL
        and not application.client(client, "sasl.mechanism")
    ):
        key = application.key(client, "sasl.mechanism") or "sasl.mechanism"
        yield Refusal.of_value(
            key, "", "a SASL mechanism such as `PLAIN`, as `security.protocol` enables SASL"
        )
