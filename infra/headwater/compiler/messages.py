"""Problems of topics, groups, stores and processors that the compiler refuses."""

from collections.abc import Mapping, Sequence

from headwater.compiler.java.patterns import UntranslatablePatternError
from headwater.compiler.streams_config import REUSE_SOURCE_TOPICS, Guarantee
from headwater.compiler.version_differences import STORE_ADDED_AGAIN_STAYS_CONNECTED
from headwater.model.nodes import Node, SourceNode, StateStore
from headwater.model.problems import Location, Problem, ProblemCode, Severity, first_names
from headwater.model.topology import Application, DocumentForm, Sink


def invalid_pattern(node: SourceNode, reason: UntranslatablePatternError) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_TOPOLOGY,
        summary=f"The pattern of source {node.name} is not a valid regular expression: {reason}.",
        node=node.name,
        expected="a Java regular expression",
        found=str(node.pattern),
        why="Java throws PatternSyntaxException before the topology is built.",
        fix="Correct the pattern.",
        location=node.at,
    )


def unsupported_pattern(node: SourceNode, reason: UntranslatablePatternError) -> Problem:
    return Problem(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        summary=f"The pattern of source {node.name} cannot be evaluated here: {reason}.",
        node=node.name,
        expected="a Java regular expression without unsupported constructs",
        found=str(node.pattern),
        why="The topics that it reads are not known, so the partition counts downstream of it are not "
        "known either.",
        fix="Rewrite the pattern without it, or list the topics.",
        location=node.at,
    )


def matched_twice(topic: str, node: SourceNode, other: SourceNode) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_TOPOLOGY,
        summary=f"Topic {topic} matches the patterns of two sources, {other.name} and {node.name}.",
        topic=topic,
        node=node.name,
        expected="each topic matched by one pattern",
        found=f"{other.pattern} and {node.pattern}",
        why="Kafka Streams throws TopologyException at run time, as soon as the topic exists.",
        fix="Make the patterns exclude each other, or read the topic by name.",
        location=node.at,
    )


def reads_itself(topic: str, node: SourceNode) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_TOPOLOGY,
        summary=(
            f"The pattern of source {node.name} matches {topic}, an internal topic of the application itself."
        ),
        topic=topic,
        node=node.name,
        expected="a pattern that matches no internal topic of the application",
        found=str(node.pattern),
        why="Once the topic exists Kafka Streams reads it as input, which changes the partition counts after "
        "the first start.",
        fix="Narrow the pattern.",
        location=node.at,
        severity=Severity.WARNING,
    )


LONGEST_NAME = 249


def lags_conflict(topic: str, least: str, most: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Topic {topic} has a min.compaction.lag.ms above its max.compaction.lag.ms.",
        topic=topic,
        expected=f"max.compaction.lag.ms of at least {least}",
        found=most,
        why="The brokers refuse a topic with it, so `pulumi up` would fail halfway.",
        fix="Raise max.compaction.lag.ms. For a versioned store, the smallest lag is its history retention "
        "and one day.",
        location=at,
    )


def computed_setting(key: str, given: str, stores: Mapping[str, str], form: DocumentForm) -> Problem:
    kept = sorted(stores.items())
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"topic.{key} has no effect on the changelog{'s' if len(kept) > 1 else ''} of "
        f"{', '.join(name for name, _ in kept)}.",
        expected=f"{key} {given}",
        found=", ".join(f"{key} {value} ({name})" for name, value in kept),
        why=(
            "Kafka Streams computes this setting for windowed and versioned stores, and the computed "
            "value takes precedence."
        )
        + _PURGED[key],
        fix=f"Remove it. {_INSTEAD[key].format(setting=_setting_of_store(key, form))}",
        severity=Severity.WARNING,
    )


_PURGED = {
    "retention.ms": " The setting does apply to repartition topics, which lose records that are older.",
    "min.compaction.lag.ms": "",
}
_INSTEAD = {
    "retention.ms": "Change the retention of the store, set "
    "`windowstore.changelog.additional.retention.ms`, or {setting}.",
    "min.compaction.lag.ms": "Change the store's history retention, or {setting}.",
}


def _setting_of_store(key: str, form: DocumentForm) -> str:
    """Return where the changelog topic of one store gets a setting of its own."""
    match form:
        case DocumentForm.DESCRIBED:
            return (
                f"set {key} in the code (`withLoggingEnabled`), and in `overrides` of the store below "
                "`describe.stores`"
            )
        case DocumentForm.EXPORTED:
            return f"set {key} in the code (`withLoggingEnabled`), and export the document again"
        case _:
            return f"set the store's own `logging: {{{key}: …}}`"


def invalid_topic_name(topic: str, reason: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_NAME,
        summary=f"{topic} is not a valid topic name: {reason}.",
        topic=topic,
        expected=f"at most {LONGEST_NAME} characters: letters, digits, '.', '_' and '-'",
        found=reason,
        why="Kafka Streams throws InvalidTopicException when it derives the name.",
        fix="Shorten or correct the application id, the operator's name or the store's name.",
        location=at,
    )


def not_executable(application: Application, found: str) -> Problem:
    """Return the problem of an application that Headwater's runtime cannot execute."""
    return Problem(
        code=ProblemCode.INVALID_PROCESSORS,
        summary=f"{application.id} cannot have a number of processors: the document does not declare what "
        "its operators do.",
        application=application.id,
        expected="a document with `topology`",
        found=found,
        why="Only Headwater's runtime assigns partitions to processors. Kafka Streams does not start if a "
        "changelog topic has another partition count than the inputs.",
        fix="Remove `processors`, or declare the operators below `topology` and run the application with "
        "`headwater run`.",
        location=application.at,
    )


def not_exactly_once(application: Application, guarantee: Guarantee) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_PROCESSORS,
        summary=f"{application.id} cannot have a number of processors with {guarantee.value}.",
        expected=Guarantee.EXACTLY_ONCE_V2.value,
        found=guarantee.value,
        why="A processor commits the offsets of all its partitions and its state in one transaction. Without "
        "transactions, a failure between the two would process records twice or lose them.",
        fix="Set `processing.guarantee: exactly_once_v2` in the application's config, or remove "
        "`processors`.",
        location=application.at,
    )


def unlogged_store(store: StateStore) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_PROCESSORS,
        summary=f"Store {store.name} has no changelog topic, so its sub-topology cannot have a number of "
        "processors.",
        node=store.name,
        expected="a store with a changelog topic",
        found="the changelog topic of another sub-topology" if store.logged else "logging is disabled",
        why="A processor that moves to another executor restores its state from its partition of the "
        "changelog topic. Without it, the state is lost.",
        fix=f"{_ADD_ONCE} Or remove `processors`."
        if store.logged
        else "Remove `logging: false` of the store, or remove `processors`.",
        location=store.at,
    )


def restored_from_source(store: StateStore, topic: str) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_PROCESSORS,
        summary=f"Store {store.name} is restored from its source topic {topic}, so its sub-topology cannot "
        "have a number of processors.",
        topic=topic,
        node=store.name,
        expected="a store with its own changelog topic",
        found="a source topic that serves as changelog",
        why="After partitions were added to the source topic, a processor has keys of several partitions, "
        "but it restores its state from one.",
        fix=f"Remove `{REUSE_SOURCE_TOPICS}` from `topology.optimization`, replace a read-only store by a "
        "table, or remove `processors`.",
        location=store.at,
    )


_MOST_NAMES = 10
_ADDED_AGAIN = (
    "The builder of the store is added again. Kafka Streams before "
    f"{STORE_ADDED_AGAIN_STAYS_CONNECTED.since_text} then forgets the processors that were connected before"
)
_ADD_ONCE = (
    "Add the builder of the store once, and connect further processors by the name of the store "
    "(`connectProcessorAndStateStores`)."
)


def filled_elsewhere(store: str, topic: str, users: Sequence[Node]) -> Problem:
    """Return the problem of `users` of a read-only store that do not get later records of its topic."""
    processors = first_names([node.name for node in users], _MOST_NAMES)
    return Problem(
        code=ProblemCode.INVALID_TOPOLOGY,
        summary=f"Store {store} is filled from topic {topic}, but not for {processors}.",
        topic=topic,
        node=users[0].name,
        expected=f"a sub-topology that reads {topic}",
        found=f"{processors} in a sub-topology that does not read it",
        why=f"{_ADDED_AGAIN}: tasks restore the store from {topic} when they start, and get no later record.",
        fix=_ADD_ONCE,
        location=users[0].at,
        severity=Severity.WARNING,
    )


def unequal_changelog(store: str, topic: str, user: Node, count: int, tasks: int) -> Problem:
    """Return the problem of a topic that is the changelog topic of `user`, which does not read it."""
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=f"Topic {topic} is the changelog topic of store {store}, but its count is not the number of "
        f"tasks of {user.name}.",
        topic=topic,
        node=user.name,
        expected=f"{tasks} partitions",
        found=str(count),
        why=f"{_ADDED_AGAIN}, and treats {topic} as an internal topic. It throws StreamsException, because "
        "the topic has another count, and the application stops.",
        fix=_ADD_ONCE,
        location=user.at,
    )


def without_state(application: Application) -> Problem:
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"`processors` has no effect on {application.id}: none of its sub-topologies has state.",
        expected="a store",
        found="none",
        why="A sub-topology without state has one task for each partition, so you can add partitions at any "
        "time.",
        fix="Remove `processors`.",
        location=application.at,
        severity=Severity.WARNING,
    )


def unsupported_document(what: str, remedy: str, node: str | None) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_TOPOLOGY,
        summary=f"The streams protocol does not support {what}.",
        node=node,
        expected="sources with topic names in an unnamed topology",
        found=what,
        why="Kafka Streams throws UnsupportedOperationException when the application is constructed.",
        fix=f"{remedy}, or use `protocol: classic`.",
    )


def scattered_group(group: frozenset[str]) -> Problem:
    topics = ", ".join(sorted(group))
    return Problem(
        code=ProblemCode.INVALID_TOPOLOGY,
        summary=f"The topics {topics} must be co-partitioned but are read by different sub-topologies.",
        topic=min(group),
        expected="a co-partition group within one sub-topology",
        found=topics,
        why=(
            'Kafka Streams throws IllegalStateException ("Not all copartition groups were converted to '
            'broker topology") '
            "when the application is constructed; cogroup() over repartitioned inputs does this."
        ),
        fix="Group the inputs without a key change, or use `protocol: classic`.",
    )


def unwritten_sink(sink: Sink) -> Problem:
    return Problem(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        summary=f"The managed sink topic {sink.topic} follows the sub-topology that writes it, but no "
        "sub-topology writes it.",
        topic=sink.topic,
        expected="a sink that writes the topic by name",
        found="no such sink",
        why="Without a writer there is no partition count to follow. Topics chosen by a topic name extractor "
        "are not known.",
        fix="Correct the topic's name, or declare its partitions as a number.",
    )
