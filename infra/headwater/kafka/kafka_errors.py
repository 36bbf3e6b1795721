"""Problems for the errors of Kafka, as an operator needs them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import attrs
from confluent_kafka import KafkaError, ThrottleEvent

from headwater.model.acls import CLUSTER_NAME, Operation, Permission, ResourceKind
from headwater.model.problems import Problem, ProblemCode

# librdkafka's own codes begin with an underscore.
ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
TIMED_OUT = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001
REFUSED_SETTINGS = (KafkaError.POLICY_VIOLATION, KafkaError.INVALID_CONFIG)
"""Errors of brokers that do not accept the settings of a topic."""
NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, ALL_BROKERS_DOWN)  # noqa: SLF001
COORDINATOR_MOVING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
"""The answers while the coordinator of a group starts, moves to another broker, or has no replica in sync."""
_UNAUTHENTICATED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)  # noqa: SLF001

_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: ("topic {}", ResourceKind.TOPIC),
    KafkaError.GROUP_AUTHORIZATION_FAILED: ("group {}", ResourceKind.GROUP),
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ("transactional id {}", ResourceKind.TRANSACTIONAL_ID),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: ("the cluster", ResourceKind.CLUSTER),
}
"""Error code → the resource, as a phrase and as a type."""
_CLIENT_CERTIFICATE = re.compile(
    r"alert (bad|unknown|unsupported|expired|revoked)? ?certificate|alert certificate"
)
_TLS = re.compile(r"SSL handshake failed|SSL routines|SSL connection closed")
_CLOSED = re.compile(r"connection closed by peer")
_END_OF_TLS = re.compile(r"unexpected eof|eof occurred", re.IGNORECASE)
_NO_TOKEN = re.compile(
    r"no \S+ token(?: within|: no (?:answer of|connection to) the token URL|.* answers 5\d\d\b)"
)
_OF_BROKER = r"(\[[^\]\s]+\]:\d+|[^\s/\]]+:\d+)/(?:bootstrap|\d+): "
_ADDRESS = re.compile(rf"{_OF_BROKER}(?=Connect to|Connection setup timed out)")
_THROTTLED_SHARE = 0.2
"""The part of the awaited time that a quota has to take to be the cause of a missing answer."""
_BROKER = re.compile(r"^.*?/(?:bootstrap|\d+): ")
_UNVERIFIED = re.compile(r"certificate verify failed")
_NOT_VALID_NOW = re.compile(r"certificate has expired|certificate is not yet valid")
_STATE = re.compile(r" \(after \d+ms in state \w+.*$")
_UNSEEN = (
    "Without the permission, the topic or group looks as if it did not exist: nothing is planned, changed or "
    "started."
)
_WHY = "Without the current state of the cluster, nothing is planned, changed or started."


class BrokerFault(Enum):
    """What happened to a request to a broker."""

    NO_CONNECTION = "no connection to the broker"
    NO_TLS = "no TLS connection to the broker"
    LATE = "no response in time"
    THROTTLED = "a quota delays the request"


@attrs.frozen
class ClientMessage:
    """A message of a client: an error, or a line of librdkafka's log (`code` None).

    `fault` is what happened to a request to the address `broker`; None = only `text` says it, as in
    librdkafka's log. `delay_ms` is how long a quota delays the request.
    """

    text: str
    code: int | None = None
    fault: BrokerFault | None = None
    broker: str = ""
    delay_ms: int = 0

    @property
    def has_no_tls(self) -> bool:
        """Return whether a TLS connection failed."""
        return self.fault is BrokerFault.NO_TLS or bool(_TLS.search(self.text))

    @property
    def is_unverified(self) -> bool:
        """Return whether the client does not accept the certificate of a broker."""
        return bool(_UNVERIFIED.search(self.text))

    @property
    def unconnected(self) -> Sequence[str]:
        """Return the addresses to which no connection is possible."""
        if self.fault is None:
            return tuple(_ADDRESS.findall(self.text))
        return (self.broker,) if self.fault is BrokerFault.NO_CONNECTION else ()

    @property
    def is_refused(self) -> bool:
        """Return whether the brokers rejected the credentials."""
        return self.code in _UNAUTHENTICATED or bool(_CLIENT_CERTIFICATE.search(self.text))

    @property
    def is_closed(self) -> bool:
        """Return whether a TLS connection was closed at once, as by a proxy whose brokers are stopped."""
        return bool(_END_OF_TLS.search(self.text))

    @property
    def has_no_token(self) -> bool:
        """Return whether the OAuth server does not answer, so that there is no token for the brokers."""
        return bool(_NO_TOKEN.search(self.text))

    @property
    def is_final(self) -> bool:
        """Return whether a retry cannot succeed: the credentials or the TLS settings are wrong."""
        return self.is_refused or self.has_no_tls


def throttled_message(event: ThrottleEvent) -> ClientMessage:
    """Return the message for an answer with which a broker has delayed the next request."""
    milliseconds = round(event.throttle_time * 1000)
    return ClientMessage(
        f"{event.broker_name}/{event.broker_id}: Throttled for {milliseconds} ms by a quota",
        fault=BrokerFault.THROTTLED,
        broker=event.broker_name,
        delay_ms=milliseconds,
    )


@attrs.frozen
class Answering:
    """The addresses of the `broker` that answered a request, and of all `brokers` that its answer names."""

    broker: str
    brokers: tuple[str, ...]


def client_message(error: KafkaError) -> ClientMessage:
    """Return the message of an error that the client library reports."""
    return ClientMessage(error.str(), error.code())


def unreachable_cluster(
    servers: Iterable[str],
    messages: Sequence[ClientMessage],
    seconds: float,
    *,
    needs_token: bool = False,
) -> Problem:
    """Return the problem for a cluster that does not answer, by the most specific of its `messages`.

    A client that `needs_token` and waits for it asks no broker, and reports nothing.
    """
    where = ", ".join(servers)
    if (known := _known_cause(where, messages)) is not None:
        return known
    specific = [item for item in messages if item.code != ALL_BROKERS_DOWN]
    is_silent = needs_token and not specific
    return Problem(
        code=ProblemCode.CLUSTER_UNREACHABLE,
        summary="No Kafka broker can be reached.",
        expected=f"a broker at {where}{', and an OAuth token' if is_silent else ''}",
        found=_plain_text(specific[-1]) if specific else f"no answer within {seconds:g} s",
        why=_WHY,
        fix="Check the bootstrap servers, that the brokers run, and that this machine can connect to them "
        "and to the addresses that they advertise." + (_OTHERWISE if is_silent else ""),
    )


_OTHERWISE = " If they do, check that the token URL answers: without a token, no broker is asked."


def unanswered_request(
    what: str, answering: Answering, messages: Sequence[ClientMessage], seconds: float
) -> Problem:
    """Return the problem for a request without an answer, of a cluster of which a broker answers.

    `what` is the request, such as "describe the group orders". `messages` are the messages of the client
    library since the last answer, and the failures of connections; `seconds` is how long the answer was
    awaited.
    """
    # A broker answers, so the security protocol is right: a closed connection is no cause.
    unclosed = [item for item in messages if not _CLOSED.search(item.text)]
    if (known := _known_cause(", ".join(answering.brokers), unclosed)) is not None:
        return known
    silent = sorted({address for item in messages for address in item.unconnected})
    late = sorted({item.broker for item in messages if item.fault is BrokerFault.LATE})
    failed = f"; no connection to {', '.join(silent)}" if silent else ""
    failed += f"; no response in time from {', '.join(late)}" if late else ""
    delays = [item for item in messages if item.fault is BrokerFault.THROTTLED]
    delay_ms = sum(item.delay_ms for item in delays)
    is_throttled = delay_ms > 0 and delay_ms >= _THROTTLED_SHARE * seconds * 1000
    throttled = sorted({item.broker for item in delays}) if is_throttled else []
    failed += f"; a quota delays requests to {', '.join(throttled)}" if throttled else ""
    return Problem(
        code=ProblemCode.REQUEST_NOT_ANSWERED,
        summary=f"The Kafka brokers did not answer the request to {what}.",
        expected=f"an answer within {seconds:g} s",
        found=f"{answering.broker} answers, and names {', '.join(answering.brokers) or 'no broker'}{failed}",
        why=_WHY,
        fix=" ".join(_list_remedies(has_silent=bool(silent), is_throttled=is_throttled)),
    )


def _list_remedies(*, has_silent: bool, is_throttled: bool) -> Iterator[str]:
    if has_silent or not is_throttled:
        yield _START_BROKERS
    if is_throttled:
        yield _RAISE_QUOTA


_START_BROKERS = (
    "Start the brokers that are stopped, and check that this machine can connect to the addresses "
    "that they advertise. A group has a coordinator, and a partition can be read, only while a replica "
    "that is in sync runs."
)
_RAISE_QUOTA = (
    "Have the quota raised (`request_percentage`; for changes of topics `controller_mutation_rate`, for "
    "records `consumer_byte_rate`), and run again. `kafka-configs.sh --bootstrap-server BROKER --describe "
    "--entity-type users` shows the quotas of users, `--entity-type clients` the quotas of client ids."
)


def _known_cause(where: str, messages: Sequence[ClientMessage]) -> Problem | None:
    """Return the problem for credentials or TLS settings that are wrong; None = the messages name neither."""
    for item in messages:
        if item.is_refused:
            return _refused_login(where, item)
    for item in messages:
        if item.has_no_tls:
            return _tls_failed(where, item)
    for item in messages:
        if _CLOSED.search(item.text):
            return _closed_connection(where, item)
    return None


def _plain_text(item: ClientMessage) -> str:
    """Return the text without the parts that differ from attempt to attempt."""
    return _STATE.sub("", _BROKER.sub("", item.text))


def _refused_login(where: str, item: ClientMessage) -> Problem:
    if "OAUTHBEARER token" in item.text:
        what = "login: it has no OAuth token"
        fix = "Check the token URL, the client id and the secret, and that this machine can reach the URL."
    elif "AWS_MSK_IAM token" in item.text:
        what = "login: it has no AWS token"
        fix = "Check that this machine has valid credentials of AWS, such as a profile or a role."
    elif item.code in _UNAUTHENTICATED:
        what = "credentials"
        fix = "Compare user name, password and SASL mechanism with the brokers' listener."
    else:
        what = "client certificate"
        fix = (
            "Set a client certificate and its key that are signed by an authority that the brokers trust and "
            "that have not expired."
        )
    return Problem(
        code=ProblemCode.AUTHENTICATION_REFUSED,
        summary=f"The Kafka brokers refuse the {what}.",
        expected=f"accepted credentials at {where}",
        found=_plain_text(item),
        why=_WHY,
        fix=fix,
    )


def _tls_failed(where: str, item: ClientMessage) -> Problem:
    return Problem(
        code=ProblemCode.CLUSTER_UNREACHABLE,
        summary="No TLS connection to a Kafka broker is possible.",
        expected=f"a TLS listener with a trusted certificate at {item.broker or where}",
        found=_plain_text(item),
        why=_WHY,
        fix=_RENEW_CERTIFICATE if _NOT_VALID_NOW.search(item.text) else _TRUST_CERTIFICATE,
    )


_RENEW_CERTIFICATE = (
    "Renew the certificate of the broker, or the CA certificate that signed it, whichever is not valid now. "
    "If both are valid, correct the clock of this machine."
)
_TRUST_CERTIFICATE = (
    "If the listener does not use TLS, set the security protocol to PLAINTEXT or SASL_PLAINTEXT. Otherwise "
    "set the CA certificate that signed the brokers' certificates, and use a host name that these "
    "certificates contain."
)


def _closed_connection(where: str, item: ClientMessage) -> Problem:
    return Problem(
        code=ProblemCode.CLUSTER_UNREACHABLE,
        summary="The Kafka broker closes the connection at once.",
        expected=f"a listener of the configured security protocol at {where}",
        found=_plain_text(item),
        why=_WHY,
        fix="Use the security protocol of the listener: SSL or SASL_SSL where it uses TLS, "
        "SASL_PLAINTEXT or SASL_SSL where it requires a login.",
    )


def is_moving(answer: object) -> bool:
    """Return whether the coordinator of a group starts or moves, so that the request is sent again."""
    return isinstance(answer, KafkaError) and answer.code() in COORDINATOR_MOVING


def is_answer(error: KafkaError) -> bool:
    """Return whether a broker answered with the error: librdkafka's own codes are below `UNKNOWN`, -1."""
    return error.code() >= KafkaError.UNKNOWN


def is_denial(error: KafkaError) -> bool:
    """Return whether the error means that an ACL is missing."""
    return error.code() in _DENIED


_LISTS_FOR = (
    "`headwater acls FILES --self --for {} --principal User:NAME` prints all permissions that it needs."
)
_LISTS = (
    "`headwater acls FILES --self --for plan --principal User:NAME` prints all permissions for plans, with "
    "`--for up` those for `pulumi up`. `headwater run` needs those for plans, and those that are printed "
    "without `--self --for plan`."
)


def not_authorized(
    error: KafkaError,
    what: str,
    name: str,
    operation: Operation = Operation.DESCRIBE,
    *,
    why: str = _UNSEEN,
    purpose: str = "",
) -> Problem:
    """Return the problem for a request that the brokers denied.

    Args:
        error: the error of the brokers.
        what: the request, such as "see topic".
        name: the topic or group of the request.
        operation: the operation that needs a permission.
        why: the consequence.
        purpose: what the user is for, as `headwater acls --for` names it. Empty = it plans, runs `pulumi up`,
            or runs an application.
    """
    phrase, kind = _DENIED[error.code()]
    right = f"{operation} on {phrase.format(name)}"
    permission = Permission(kind, CLUSTER_NAME if kind is ResourceKind.CLUSTER else name, operation)
    return Problem(
        code=ProblemCode.NOT_AUTHORIZED,
        summary=f"The Kafka brokers do not let this user {what} {name}.",
        topic=name if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED else None,
        expected=f"permission {right}",
        found=error.name(),
        why=why,
        fix=f"Grant the user {right}: `{permission.command}`. "
        f"{_LISTS_FOR.format(purpose) if purpose else _LISTS}",
    )


def unexpected_error(error: KafkaError, what: str, name: str) -> Problem:
    """Return the problem for any other error, which may be temporary."""
    return unusable_answer(f"{what} {name}", f"{error.name()}: {error.str()}")


def unusable_answer(what: str, found: str) -> Problem:
    """Return the problem for an answer to the request `what` that is an error, or cannot be read."""
    return Problem(
        code=ProblemCode.REQUEST_NOT_ANSWERED,
        summary=f"The Kafka brokers did not answer the request to {what}.",
        expected="an answer",
        found=found,
        why=_WHY,
        fix="Run again. If the problem persists, check the logs of the brokers.",
    )
