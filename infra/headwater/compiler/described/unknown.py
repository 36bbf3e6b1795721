"""Details that decide a count, a name or a setting, and that neither a text nor its document contains."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from headwater.compiler.described.joins import unclear_groupings
from headwater.compiler.described.names import GENERATED, can_be_explicit
from headwater.compiler.described.stores import find_stores
from headwater.compiler.described.structure import Structure
from headwater.compiler.streams_config import REUSE_SOURCE_TOPICS, StreamsConfig
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.topology import Application, CreatedBy, DescribedTopology, UnknownDetails
from headwater.model.versions import KafkaStreamsVersion

_MOST_NAMES = 20
_APPLICATION = {
    "kafkaStreams": "its version of Kafka Streams",
    "protocol": "its group protocol",
    "config": "its config",
}


def known_calls(described: DescribedTopology) -> Mapping[str, CreatedBy]:
    """Return the calls that created repartition topics, as far as the document shows them.

    Only `repartition` takes an explicit partition count.
    """
    explicit = dict.fromkeys(described.repartition_partitions, CreatedBy.REPARTITION)
    return {**explicit, **described.created_by}


def find_unknown(
    described: DescribedTopology, application: Application, known: Mapping[str, Collection[str]]
) -> UnknownDetails:
    """Return what neither the text nor the document shows.

    `known`: store → names of its details that are known. The protocol matters only with repartition topics,
    the config only with internal topics.
    """
    structure = Structure.from_topology(described.nodes)
    config = StreamsConfig.from_application(application)
    reuses = REUSE_SOURCE_TOPICS in config.optimizations
    internal = structure.internal_topics
    findings = find_stores(structure, described.stores, config.version, reuses_sources=reuses)
    has_topics = bool(internal) or any(not finding.is_global for finding in findings)
    needed = {
        "protocol": bool(internal) and "group.protocol" not in application.config,
        "config": has_topics and not application.config,
    }
    return UnknownDetails(
        stores={
            finding.name: unknown
            for finding in findings
            if (unknown := tuple(each for each in finding.unknown if each not in known.get(finding.name, ())))
        },
        repartitions=tuple(
            topic
            for topic in internal
            if topic not in described.repartition_partitions and _may_be_explicit(topic, structure)
        ),
        created_by=unclear_groupings(structure, frozenset(internal), known_calls(described)),
        application=tuple(key for key, is_needed in needed.items() if is_needed),
    )


def unknown_problems(
    described: DescribedTopology, asked: Mapping[str, Collection[str]], version: KafkaStreamsVersion
) -> Iterator[Problem]:
    """Warn of the details that `described.unknown` lists, one problem for each sort of detail.

    `asked`: store → details that are reported as errors. `version` is assumed if it is not known.
    """
    for problem in _unknown_details(described, asked, version):
        yield problem.located(location=described.at)


def _unknown_details(
    described: DescribedTopology, asked: Mapping[str, Collection[str]], version: KafkaStreamsVersion
) -> Iterator[Problem]:
    unknown = described.unknown
    if repartitions := [
        each for each in unknown.repartitions if each not in described.repartition_partitions
    ]:
        yield _missing_detail(
            "describe.unknown.repartitions",
            f"Whether these repartition topics have an explicit partition count is not known: "
            f"{_list_texts(repartitions)}.",
            "the count that `repartition()` was given, or none",
            "Without a count they follow the topics that they are written from.",
            "Add the counts under `describe.repartitions`.",
        )
    if created_by := [each for each in unknown.created_by if each not in known_calls(described)]:
        yield _missing_detail(
            "describe.unknown.createdBy",
            "Whether `groupBy` or `repartition` created these topics is not known: "
            f"{_list_texts(created_by)}.",
            "`groupBy` or `repartition`",
            "It decides which topics are co-partitioned and, with the streams protocol, partition counts.",
            "Add the calls under `describe.createdBy`.",
        )
    if stores := _unknown_stores(described, asked):
        yield _missing_detail(
            "describe.unknown.stores",
            f"Not known of stores: {'; '.join(_group_stores(stores))}.",
            "details of the stores, or Kafka Streams' defaults",
            "They decide whether a changelog topic exists, and its settings.",
            "Add what is not the default under `describe.stores`.",
        )
    if unknown.application:
        assumed = {"kafkaStreams": f" ({version.release} is assumed)"}
        missing = [f"{_APPLICATION[each]}{assumed.get(each, '')}" for each in unknown.application]
        yield _missing_detail(
            "describe.unknown.application",
            f"Not known of the application: {_list_texts(missing)}.",
            ", ".join(f"`application.{each}`" for each in unknown.application),
            "It decides names, settings and partition counts of internal topics.",
            "Declare it under `application`, or import with `--kafka-streams` and `--config`.",
            # No topic shows the version: the problem also appears after an import with a cluster.
            is_on_cluster=set(unknown.application) != {"kafkaStreams"},
        )


def _unknown_stores(
    described: DescribedTopology, asked: Mapping[str, Collection[str]]
) -> Mapping[str, Sequence[str]]:
    """Return store → unknown details, without those that are reported as errors or that its entry answers."""
    stores = {
        name: [
            each
            for each in given
            if each not in {*asked.get(name, ()), *_superfluous_details(described, name)}
        ]
        for name, given in described.unknown.stores.items()
    }
    return {name: details for name, details in stores.items() if details}


def _superfluous_details(described: DescribedTopology, store: str) -> Iterator[str]:
    """Yield the details of a store that its entry answers although they are listed as unknown."""
    detail = described.stores.get(store)
    if detail is not None and detail.kind is not None:
        yield "kind"
    if detail is not None and detail.retention_ms is not None:
        yield "retention"


def _group_stores(stores: Mapping[str, Sequence[str]]) -> list[str]:
    """Return phrases with the stores of which the same details are not known."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, details in stores.items():
        names.setdefault(tuple(details), []).append(name)
    return [f"{', '.join(details)} of {_list_texts(of, ' and ')}" for details, of in names.items()]


def _list_texts(names: Sequence[str], last: str = ", ") -> str:
    shown = list(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        return f"{', '.join(shown)} and {len(names) - _MOST_NAMES:,} more"
    return last.join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""


def _missing_detail(
    section: str, summary: str, expected: str, why: str, fix: str, *, is_on_cluster: bool = True
) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_DETAIL,
        summary=summary,
        expected=expected,
        found="not known",
        why=f"The text does not show it. {why}",
        fix=f"{fix} Then remove the entries from `{section}`."
        + (
            " `headwater import --bootstrap-server` reads such details from the topics of a running "
            "application."
            if is_on_cluster
            else ""
        ),
        severity=Severity.WARNING,
    )


def _may_be_explicit(topic: str, structure: Structure) -> bool:
    """Return whether `repartition()` may have created the topic: it names the sink after a user's name."""
    return can_be_explicit(topic) and (
        GENERATED.fullmatch(topic) is not None
        or any(sink.name == f"{topic}-sink" for sink in structure.sinks[topic])
    )
