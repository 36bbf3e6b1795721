"""What Kafka's errors mean to the operator."""

from collections.abc import Iterable

from confluent_kafka import KafkaError

from infra.model.problems import Problem, ProblemCode

# librdkafka's own codes begin with an underscore.
ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, ALL_BROKERS_DOWN)  # noqa: SLF001
_UNAUTHENTICATED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)  # noqa: SLF001
_TLS_FAILED = KafkaError._SSL  # noqa: SLF001

_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topics",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "consumer groups",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the cluster",
}
_CLIENT_CERTIFICATE = ("certificate required", "bad certificate", "handshake failure", "certificate unknown")


def is_final(error: KafkaError) -> bool:
    """Whether trying again is of no use: the credentials or the TLS set-up are wrong."""
    return error.code() in (*_UNAUTHENTICATED, _TLS_FAILED)


def unreachable(servers: Iterable[str], errors: Iterable[KafkaError], seconds: float) -> Problem:
    """Return the problem for a cluster that does not answer, with the reason that weighs most."""
    told = sorted(errors, key=is_final)
    error = told[-1] if told else None
    text = error.str() if error else f"no answer within {seconds:g} s"
    if error is not None and error.code() in _UNAUTHENTICATED:
        return _authentication_refused(servers, text)
    if error is not None and error.code() == _TLS_FAILED:
        return _tls_failed(servers, text)
    if "security.protocol" in text or "SSL listener" in text:
        return _wrong_listener(servers, text)
    return Problem(
        code=ProblemCode.CLUSTER_UNREACHABLE,
        summary="No Kafka broker can be reached.",
        expected=f"a broker at {', '.join(servers)}",
        found=text,
        why="Without the cluster's present state nothing can be planned.",
        fix="Check the bootstrap servers, that the brokers run, and that the network lets this machine "
        "connect to them and to the addresses that they advertise.",
    )


def _authentication_refused(servers: Iterable[str], text: str) -> Problem:
    return Problem(
        code=ProblemCode.AUTHENTICATION_REFUSED,
        summary="The Kafka brokers refuse the credentials.",
        expected=f"to be let in at {', '.join(servers)}",
        found=text,
        why="Without the cluster's present state nothing can be planned.",
        fix="Check user name, password and SASL mechanism against those of the brokers' listener, and that "
        "the listener is the one for this mechanism.",
    )


def _tls_failed(servers: Iterable[str], text: str) -> Problem:
    if any(words in text.lower() for words in _CLIENT_CERTIFICATE):
        return Problem(
            code=ProblemCode.AUTHENTICATION_REFUSED,
            summary="The Kafka brokers refuse the client certificate.",
            expected=f"to be let in at {', '.join(servers)}",
            found=text,
            why="Without the cluster's present state nothing can be planned.",
            fix="Set a client certificate and key that a CA of the brokers' truststore has signed and that "
            "are not expired.",
        )
    return Problem(
        code=ProblemCode.CLUSTER_UNREACHABLE,
        summary="No TLS connection to a Kafka broker can be made.",
        expected=f"a TLS listener with a trusted certificate at {', '.join(servers)}",
        found=text,
        why="Without the cluster's present state nothing can be planned.",
        fix="If the listener does not use TLS, set the security protocol to PLAINTEXT or SASL_PLAINTEXT. "
        "Otherwise set the CA certificate that signed the brokers' certificates, and use a host name that "
        "these certificates contain.",
    )


def _wrong_listener(servers: Iterable[str], text: str) -> Problem:
    return Problem(
        code=ProblemCode.CLUSTER_UNREACHABLE,
        summary="The Kafka broker closes the connection: its listener speaks another security protocol.",
        expected=f"a listener of the configured security protocol at {', '.join(servers)}",
        found=text,
        why="Without the cluster's present state nothing can be planned.",
        fix="Set the security protocol to that of the listener: SSL or SASL_SSL for TLS, SASL_PLAINTEXT or "
        "SASL_SSL for SASL.",
    )


def is_denial(error: KafkaError) -> bool:
    """Whether an ACL is missing."""
    return error.code() in _DENIED


def not_authorized(error: KafkaError, what: str, name: str) -> Problem:
    """Return the problem for a request that the brokers deny: to do `what` (see a topic) with `name`."""
    return Problem(
        code=ProblemCode.NOT_AUTHORIZED,
        summary=f"The Kafka brokers do not let this user {what}: {name}.",
        topic=name if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED else None,
        expected=f"the ACLs to read {_DENIED[error.code()]}",
        found=error.name(),
        why="What may not be seen looks as if it did not exist: nothing can be planned on that ground.",
        fix="Grant the user Describe and DescribeConfigs on the application's topics (prefixed with its id), "
        "Describe on its source topics, and Describe on its consumer group.",
    )


def unexpected(error: KafkaError, what: str, name: str) -> Problem:
    """Return the problem for an error that has no better name; it may pass."""
    return Problem(
        code=ProblemCode.CLUSTER_UNREACHABLE,
        summary=f"The Kafka brokers could not say all that was asked: to {what}, {name}.",
        expected="an answer",
        found=f"{error.name()}: {error.str()}",
        why="Without the cluster's present state nothing can be planned.",
        fix="Run again; if it stays, look into the brokers' logs.",
    )
