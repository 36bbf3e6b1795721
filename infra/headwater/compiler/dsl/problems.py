"""Constructors of the DSL's problems; errors name the exception that Kafka Streams throws (facts 8)."""

from headwater.model.problems import Location, Problem, ProblemCode, Severity

TOPOLOGY = "TopologyException"
STREAMS = "StreamsException"
ARGUMENT = "IllegalArgumentException"


def topology_error(
    summary: str,
    *,
    throws: str = TOPOLOGY,
    when: str = "while the topology is built",
    fix: str,
    at: Location | None = None,
    code: ProblemCode = ProblemCode.INVALID_TOPOLOGY,
    node: str | None = None,
    topic: str | None = None,
    expected: str | None = None,
    found: str | None = None,
) -> Problem:
    """Return the problem of a topology for which Kafka Streams throws the exception `throws`."""
    return Problem(
        code=code,
        summary=summary,
        node=node,
        topic=topic,
        expected=expected,
        found=found,
        why=f"Kafka Streams throws {throws} {when}: the application does not start.",
        fix=fix,
        location=at,
    )


def unsupported_call(
    summary: str,
    *,
    fix: str,
    at: Location | None = None,
    node: str | None = None,
    expected: str | None = None,
    found: str | None = None,
) -> Problem:
    """Return the problem of a call that the types of the DSL do not have."""
    return Problem(
        code=ProblemCode.INVALID_TOPOLOGY,
        summary=summary,
        node=node,
        expected=expected,
        found=found,
        why="The DSL of Kafka Streams has no such call: a program that makes it does not compile.",
        fix=fix,
        location=at,
    )


def lint(
    code: ProblemCode,
    summary: str,
    *,
    why: str,
    fix: str,
    at: Location | None = None,
    node: str | None = None,
    topic: str | None = None,
    expected: str | None = None,
    found: str | None = None,
    severity: Severity = Severity.WARNING,
) -> Problem:
    """Return a problem that Kafka Streams accepts silently."""
    return Problem(
        code=code,
        summary=summary,
        node=node,
        topic=topic,
        expected=expected,
        found=found,
        why=why,
        fix=fix,
        location=at,
        severity=severity,
    )
