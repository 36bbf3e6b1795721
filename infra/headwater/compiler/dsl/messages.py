"""Constructors of the DSL's problems; errors name the exception that Kafka Streams throws (facts 8)."""

from headwater.compiler.version_differences import GLOBAL_STORE_NOT_LOGGED
from headwater.model.nodes import RepartitionTopic
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


def lint_problem(
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


def node_name_taken(name: str, at: Location | None, other: Location | None) -> Problem:
    return topology_error(
        f"Two nodes are named {name}.",
        node=name,
        expected="each node name once",
        found=_other_location(at, other),
        at=at,
        fix="Give one of them another name.",
    )


def reads_no_topic(source: str, at: Location | None) -> Problem:
    return topology_error(
        f"Source {source} reads no topic.", node=source, at=at, fix="Name the topics that it reads."
    )


def topic_read_twice(topic: str, source: str, other: str, at: Location | None) -> Problem:
    return topology_error(
        f"Topic {topic} is read by two sources, {other} and {source}.",
        node=source,
        topic=topic,
        expected="one source node for a topic",
        found=f"{other} and {source}",
        at=at,
        fix="Read it once and use the result twice (a table's `toStream` gives its stream).",
    )


def pattern_matches_named_topic(pattern: str, topic: str, source: str, at: Location | None) -> Problem:
    return topology_error(
        f"Pattern {pattern} matches topic {topic}, which another source reads by name.",
        node=source,
        topic=topic,
        expected="patterns that match no topic read elsewhere",
        found=f"{pattern} matches {topic}",
        at=at,
        fix="Narrow the pattern, or drop the source that names the topic.",
    )


def repartition_topic_taken(topic: RepartitionTopic, other: RepartitionTopic) -> Problem:
    return topology_error(
        f"Two repartitions write the topic {topic.name}.",
        topic=topic.name,
        expected="one repartition for a topic",
        found=_other_location(topic.at, other.at),
        at=topic.at,
        fix="Name one of the groups or joins differently, or use one grouped handle twice.",
    )


def no_parent(name: str, at: Location | None) -> Problem:
    return topology_error(
        f"{name} has no parent.", node=name, at=at, fix="Name the nodes that feed it in `parents`."
    )


def parent_unknown(name: str, parent: str, at: Location | None) -> Problem:
    text = (
        f"{name} is its own parent."
        if parent == name
        else f"{name} has a parent {parent} that is not added before it."
    )
    return topology_error(
        text, node=name, found=parent, at=at, fix="Name sources or processors added before."
    )


def parent_is_a_sink(name: str, sink: str, at: Location | None, *, dynamic: bool) -> Problem:
    """Return the problem; Kafka Streams rejects a sink with an extractor only in `describe()`."""
    return topology_error(
        f"{name} has the sink {sink} as a parent.",
        throws="UnsupportedOperationException" if dynamic else TOPOLOGY,
        node=name,
        found=sink,
        at=at,
        fix="Name sources or processors added before.",
    )


def store_name_taken(name: str, at: Location | None, other: Location | None, *, is_global: bool) -> Problem:
    return topology_error(
        f"A different {'global store' if is_global else 'store'} is already added with the name {name}.",
        node=name,
        expected="each store name once",
        found=_other_location(at, other),
        at=at,
        fix="Give one of the stores another name. If the program passes one builder object twice, set "
        "`shared: true` on both.",
    )


def global_store_nodes_alike(store: str, name: str, at: Location | None) -> Problem:
    return topology_error(
        f"Source and processor of global store {store} have the same name, {name}.",
        node=name,
        at=at,
        fix="Name them differently.",
    )


def global_store_logged(store: str, at: Location | None) -> Problem:
    return topology_error(
        f"Global store {store} has logging enabled.",
        node=store,
        expected="logging: false",
        found=f"logging, which `addGlobalStore` refuses before {GLOBAL_STORE_NOT_LOGGED.since_text}",
        at=at,
        fix=f"Set `logging: false` of store {store}: its topic serves as changelog.",
    )


def store_on_source_or_sink(name: str, at: Location | None) -> Problem:
    return topology_error(
        f"{name} is a source or a sink: no state store can be connected to it.",
        node=name,
        at=at,
        fix="Connect the stores to a processor.",
    )


def global_store_connected(processor: str, store: str, at: Location | None) -> Problem:
    return topology_error(
        f"Processor {processor} is connected to the global store {store}, which every processor can "
        "access anyway.",
        node=processor,
        found=store,
        at=at,
        fix="Remove the global store from the list.",
    )


def store_unknown(processor: str, store: str, at: Location | None) -> Problem:
    return topology_error(
        f"Processor {processor} is connected to a store {store} that is not added before it.",
        node=processor,
        found=store,
        at=at,
        fix="Add the store first (addStateStore), or correct its name.",
    )


def processor_unknown(processor: str, store: str, at: Location | None) -> Problem:
    return topology_error(
        f"Store {store} is connected to {processor}, which is not a processor added before.",
        node=processor,
        expected="a processor added before",
        found=processor,
        at=at,
        fix="Name a processor that is added before.",
    )


def _other_location(at: Location | None, other: Location | None) -> str:
    return f"also at {other}" if other is not None and other != at else "twice"
