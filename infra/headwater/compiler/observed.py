"""Compiles an observed application: its internal topics are as on the cluster, its topology is unknown."""

from collections.abc import Iterable, Iterator, Mapping

from headwater.compiler.internal_topics import changelog_config, repartition_config
from headwater.compiler.messages import not_executable
from headwater.compiler.partitioned_sinks import static_partitioning_problems
from headwater.compiler.source_problems import missing_topic
from headwater.compiler.streams_config import StreamsConfig, streams_config_problems
from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.nodes import ChangelogKind, StateStore
from headwater.model.problems import PLAN, Caller, Location, Problem, ProblemCode, Severity
from headwater.model.topology import Application, ObservedTopology, Sink, TopologyDocument, Unknown

_SUFFIXES = {
    TopicKind.CHANGELOG: "-changelog",
    TopicKind.REPARTITION: "-repartition",
    TopicKind.FK_SUBSCRIPTION: "-topic",
}
_PLAIN_STORE = StateStore("", ChangelogKind.KEY_VALUE)


def compile_observed(
    document: TopologyDocument,
    partitions: Mapping[str, int],
    *,
    following: frozenset[str] = frozenset(),
    caller: Caller = PLAN,
) -> CompiledApplication:
    """Return exactly the observed topics; raises `ValueError` if the document has none.

    `partitions`: topic → partition count on the cluster, empty = not read. A source topic whose count has
    changed is an error, because it is unknown which internal topics follow it.
    """
    application, observed = document.application, document.observed
    if observed is None:
        raise ValueError(application.id)
    config = StreamsConfig.from_application(application)
    missing = tuple(sorted(topic for topic in observed.sources if partitions and topic not in partitions))
    return CompiledApplication(
        application=application,
        subtopologies=(),
        internal_topics=tuple(_observed_topics(observed, config.topic_prefix or application.id)),
        external_sources=tuple(sorted(observed.sources)),
        missing_sources=missing,
        sinks=document.sinks,
        problems=tuple(
            problem.located(application=application.id)
            for problem in (
                *streams_config_problems(application),
                *static_partitioning_problems(application, config, None),
                *open_questions(application, observed, is_growing=config.autoscaling),
                *(
                    _missing_source(topic, observed.locations.get(topic, observed.at), caller)
                    for topic in missing
                    if topic not in following
                ),
                *_changed_counts(observed, partitions),
                *_without_effect(application),
                *((not_executable(application, "`observed` topics"),) if application.processors else ()),
                *_undecided_sinks(document.sinks, observed.at),
            )
        ),
        is_observed=True,
    )


def default_config(kind: TopicKind) -> Mapping[str, str]:
    """Return the config of a topic without settings in the document: key-value changelog or repartition."""
    return changelog_config(_PLAIN_STORE, {}, 0) if kind is TopicKind.CHANGELOG else repartition_config({})


def open_questions(
    application: Application, observed: ObservedTopology, *, is_growing: bool = False
) -> Iterator[Problem]:
    """Return a problem for each open question of the document: a hint, or with autoscaling a warning."""
    texts = {
        Unknown.SUBTOPOLOGIES: (
            f"The topology of {application.id} is not known, only its internal topics are.",
            "the text of Topology#describe()",
            "Their partition counts stay as observed: none can follow a source topic that is expanded.",
            (
                "Export the topology from the code of the application: `headwater import --jar JAR "
                f"--topology CLASS::METHOD --application-id {application.id} -o DOCUMENT`. Or have it print "
                "`topology.describe()`, and run `headwater import --describe TEXT --application-id "
                f"{application.id} --bootstrap-server BROKER -o DOCUMENT`."
            ),
        ),
        Unknown.SOURCES: (
            f"Which topics {application.id} reads is not known.",
            "names and partition counts of the source topics",
            "No plan can warn when a source topic is deleted or expanded.",
            "Name them below `observed.sources` and remove `sources` from `observed.unknown`.",
        ),
        Unknown.PROTOCOL: (
            f"Whether {application.id} uses the classic or the streams protocol is not known.",
            "`application.protocol`",
            "Its consumer group did not exist, and the two protocols decide partition counts differently.",
            "Declare `application.protocol` and remove `protocol` from `observed.unknown`.",
        ),
    }
    for unknown, at in observed.unknown.items():
        summary, expected, why, fix = texts[unknown]
        is_needed = is_growing and unknown is Unknown.SUBTOPOLOGIES
        yield Problem(
            code=ProblemCode.MISSING_DETAIL,
            summary=summary,
            application=application.id,
            expected=expected,
            found="not known",
            why=why,
            fix=fix,
            location=at,
            severity=Severity.WARNING if is_needed else Severity.INFO,
        )


def _observed_topics(observed: ObservedTopology, prefix: str) -> Iterator[InternalTopic]:
    for topic in sorted(observed.topics, key=lambda topic: topic.name):
        yield InternalTopic(
            name=f"{prefix}-{topic.name}",
            kind=topic.kind,
            partitions=topic.partitions,
            config=default_config(topic.kind) if topic.config is None else dict(sorted(topic.config.items())),
            subtopology=None,
            node=topic.name.removesuffix(_SUFFIXES[topic.kind]),
            replication_factor=topic.replication_factor,
            pinned=True,
            at=topic.at,
        )


def _missing_source(topic: str, at: Location, caller: Caller) -> Problem:
    return missing_topic(
        topic,
        caller,
        why="The application read it when it was observed, and stops without it.",
        fix="Create the topic. If the application no longer reads it, remove it from `observed.sources`.",
        location=at,
    )


def _changed_counts(observed: ObservedTopology, partitions: Mapping[str, int]) -> Iterator[Problem]:
    for topic, count in sorted(observed.sources.items()):
        now = partitions.get(topic, count)
        if now != count:
            yield Problem(
                code=ProblemCode.UNDECIDABLE_PARTITIONS,
                summary=f"Source topic {topic} has {now} partitions and had {count} when the application was "
                "observed: it is not known which internal topics follow it.",
                topic=topic,
                expected=f"{count} partitions, or a document with the topology",
                found=f"{now} partitions",
                why="An internal topic that follows it now has the wrong count, and the application "
                "stops at its next rebalance.",
                fix="Replace `observed` by the text of Topology#describe(): `headwater import --describe`. "
                f"If no internal topic follows it, set it to {now} in `observed.sources`.",
                location=observed.locations.get(topic, observed.at),
            )


def _without_effect(application: Application) -> Iterator[Problem]:
    for key in sorted(application.config):
        if key.startswith("topic.") or key == "replication.factor":
            yield Problem(
                code=ProblemCode.CONFIG_HAS_NO_EFFECT,
                summary=f"{key} has no effect on observed topics.",
                expected="settings below `observed.topics`",
                found=f"{key} in `application.config`",
                why="Whether Kafka Streams would use it for a topic depends on the topology, which is not "
                "known: each topic keeps the settings that the document lists for it.",
                fix=_instead(key, application.config[key]),
                location=application.at,
                severity=Severity.WARNING,
            )


def _instead(key: str, value: str) -> str:
    """Return how each observed topic gets the setting."""
    name = key.removeprefix("topic.")
    setting = f"`replicationFactor: {value}`"
    if name != key:
        setting = f"{name} in the `config` (with all of its settings)"
    return (
        f"Remove `{key}`, and declare {setting} of each topic below `observed.topics`. Or replace "
        "`observed` by the topology: `headwater import --describe` or `--jar`."
    )


def _undecided_sinks(sinks: Iterable[Sink], at: Location) -> Iterator[Problem]:
    for sink in sinks:
        if sink.partitions is None:
            yield Problem(
                code=ProblemCode.UNDECIDABLE_PARTITIONS,
                summary=f"The managed sink topic {sink.topic} follows a topology that is not known.",
                topic=sink.topic,
                expected="a number of partitions",
                found="follow",
                why="Without the sub-topology that writes it there is no partition count to follow.",
                fix="Declare its partitions as a number, or give the text of Topology#describe().",
                location=at,
            )
