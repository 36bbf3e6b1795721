"""Compare applications compiled for the version that they run with the same for a later version.

The version that an application runs is in its document, or else in the setup record of the last run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.compiler import compile_documents
from headwater.compiler.version_differences import Difference
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication, TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.model.records import SetupRecord
from headwater.model.topology import Application, Lifecycle, TopologyDocument
from headwater.model.versions import BEFORE_VERSIONS, KafkaStreamsVersion, read_any_version, read_version
from headwater.planner.upgrade.changes import (
    NO_DOWNGRADES,
    ApplicationUpgrade,
    Change,
    ChangeKind,
    State,
    Upgrade,
)
from headwater.planner.upgrade.data import data_notes, group_refusals
from headwater.planner.upgrade.notes import how_to_keep, unseen_differences, upgrade_notes
from headwater.planner.upgrade.topology import (
    Versions,
    is_one_group,
    topic_changes,
    topology_changes,
    version_refusals,
)

_ORDER = {kind: number for number, kind in enumerate(ChangeKind)}
_WORST = (State.NONE, State.KEPT, State.REBUILT, State.LOST)


def find_upgrade(
    before: Sequence[CompiledApplication],
    after: Sequence[CompiledApplication],
    to: KafkaStreamsVersion,
    *,
    snapshot: ClusterSnapshot | None = None,
    assumed: Iterable[str] = (),
) -> Upgrade:
    """Return what an upgrade changes; raises nothing.

    Args:
        before: the applications, compiled for the versions that their documents name.
        after: the same applications in the same order, compiled for the version `to`.
        to: the version to upgrade to.
        snapshot: the cluster, if it was read: topics that do not exist have no data to lose.
        assumed: source topics whose partition count is not known.
    """
    active = [
        pair for pair in zip(before, after, strict=True) if pair[0].application.lifecycle is Lifecycle.ACTIVE
    ]
    problems = [problem for pair in active for problem in _not_compared(*pair, to)]
    refused = {problem.application for problem in problems}
    compared = [
        compare_versions(old, new, snapshot) for old, new in active if old.application.id not in refused
    ]
    unknown = [
        _unknown_topology_problem(old.application, to, differences)
        for old, _ in active
        if old.application.id not in refused and (differences := _find_unseen(old, to))
    ]
    unnamed = [
        _names_no_version(old.application)
        for old, _ in active
        if not old.application.names_version and old.application.id not in refused
    ]
    return Upgrade(
        to=to,
        applications=tuple(compared),
        problems=(*problems, *unnamed, *unknown),
        assumed=tuple(sorted(assumed)),
        cluster_id=snapshot.cluster_id if snapshot is not None else None,
    )


def _not_compared(
    old: CompiledApplication, new: CompiledApplication, to: KafkaStreamsVersion
) -> Iterator[Problem]:
    application = old.application
    if application.kafka_streams.is_later_release_than(to):
        yield Problem(
            code=ProblemCode.UNSUPPORTED_VERSION,
            summary=f"{application.id} runs a later version than Kafka Streams {to}.",
            application=application.id,
            expected=f"a version up to {to}",
            found=str(application.kafka_streams),
            why=f"{NO_DOWNGRADES}: an earlier version may not read local state and internal topics of a "
            "later one.",
            fix="Leave the document out: Headwater knows no later version."
            if application.kafka_streams.is_newer
            else f"Choose a version from {application.kafka_streams} with `--to`, or leave the document out.",
            location=application.at,
        )
        return
    same = {(problem.code, problem.summary) for problem in errors(new.problems)}
    for problem in errors(old.problems):
        if (problem.code, problem.summary) in same:
            yield problem.located(application=application.id, location=application.at)


def _names_no_version(application: Application) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_DETAIL,
        summary=f"{application.id} names no version of Kafka Streams.",
        application=application.id,
        expected="the version that the application runs",
        found="no `application.kafkaStreams`",
        why=f"It is compared as if it ran {application.kafka_streams}.",
        fix="Set `application.kafkaStreams` in the document.",
        location=application.at,
        severity=Severity.WARNING,
    )


_UNKNOWN = "the topology that the new version builds is not known"


def _unknown_topology_problem(
    application: Application, to: KafkaStreamsVersion, differences: Sequence[Difference]
) -> Problem:
    before = application.kafka_streams
    return Problem(
        code=ProblemCode.MISSING_DETAIL,
        summary=f"What Kafka Streams {to} builds for {application.id} is not known.",
        application=application.id,
        expected="a document with calls, or the text that the new version prints",
        found=f"a text of Kafka Streams {before}, or topics of a cluster",
        why="They do not show whether these differences concern the application: "
        + ", ".join(f"{each.source} ({each.since_text})" for each in differences)
        + ".",
        fix=f"Have the application print `Topology#describe()` with Kafka Streams {to}, and compare the "
        "texts. docs/versions.md explains the differences.",
        location=application.at,
        severity=Severity.WARNING,
    )


def compare_versions(
    old: CompiledApplication, new: CompiledApplication, snapshot: ClusterSnapshot | None = None
) -> ApplicationUpgrade:
    """Return what changes between two versions of one application; the second one may be the earlier."""
    application, to = old.application, new.application.kafka_streams
    versions = Versions(old, new, snapshot, how_to_keep(application, to))
    is_comparable = not errors(old.problems) and not errors(new.problems)
    refused = (*version_refusals(versions), *(group_refusals(versions) if is_comparable else ()))
    changes = (*refused, *((*topic_changes(versions), *topology_changes(versions)) if is_comparable else ()))
    unseen = _find_unseen(old, to)
    return ApplicationUpgrade(
        id=application.id,
        before=application.kafka_streams,
        after=to,
        changes=tuple(sorted(changes, key=lambda each: (_ORDER[each.kind], each.topic or "", each.what))),
        state=_find_worst_state(old, changes),
        obstacle=_find_obstacle(versions, changes) or (_UNKNOWN if unseen else ""),
        notes=tuple(upgrade_notes(application, to)),
        group=snapshot.groups.get(application.id) if snapshot is not None else None,
        location=application.at,
        data=tuple(data_notes(versions)),
        is_known=not unseen,
    )


def _find_unseen(old: CompiledApplication, to: KafkaStreamsVersion) -> tuple[Difference, ...]:
    """Return the differences that may concern an application without calls."""
    if old.described is None and not old.is_observed:
        return ()
    return unseen_differences(old.application, to, old.described)


def _find_worst_state(old: CompiledApplication, changes: Iterable[Change]) -> State:
    has_state = any(topic.kind is TopicKind.CHANGELOG for topic in old.internal_topics)
    found = [change.state for change in changes if change.state is not None]
    return max((State.KEPT if has_state else State.NONE, *found), key=_WORST.index)


def _find_obstacle(versions: Versions, changes: Sequence[Change]) -> str:
    if any(change.kind is ChangeKind.REFUSED for change in changes):
        return "the new version does not start"
    if any(change.kind is ChangeKind.ACCEPTED for change in changes):
        return "the version before does not start"
    if not is_one_group(versions):
        return "instances of both versions would have different tasks"
    if any(change.kind is ChangeKind.PARTITIONS for change in changes):
        return "internal topics need other partition counts"
    if versions.before.application.kafka_streams.is_later_release_than(
        versions.after.application.kafka_streams
    ):
        return NO_DOWNGRADES
    return ""


def with_recorded_versions(
    documents: Sequence[TopologyDocument], records: Mapping[str, SetupRecord]
) -> tuple[TopologyDocument, ...]:
    """Return the documents; a document without a version gets the version in its setup record.

    So a later default does not change the topics of an application that is set up.
    """
    return tuple(
        _with_version(document, _recorded_or_own_version(document.application, records))
        for document in documents
    )


def _recorded_or_own_version(
    application: Application, records: Mapping[str, SetupRecord]
) -> KafkaStreamsVersion:
    record = records.get(application.id) or records.get(application.renamed_from or "")
    if application.names_version or record is None or record.unfinished:
        return application.kafka_streams
    if not record.kafka_streams:
        return BEFORE_VERSIONS
    recorded = read_any_version(record.kafka_streams)
    return application.kafka_streams if recorded is None or recorded.is_newer else recorded


def compile_recorded(
    documents: Sequence[TopologyDocument],
    records: Mapping[str, SetupRecord],
    partitions: Mapping[str, int],
) -> Mapping[str, CompiledApplication]:
    """Return application id → the application compiled for the recorded version, where that is another one.

    Applications without calls are omitted: a text of one version does not show what another one builds.
    `partitions`: topic → partition count on the cluster.
    """
    changed = {
        document.application.id: recorded
        for document in documents
        if document.has_calls
        if (recorded := _read_recorded_version(records.get(document.application.id))) is not None
        if recorded != document.application.kafka_streams
    }
    if not changed:
        return {}
    compiled = compile_documents(
        [
            _with_version(document, changed.get(document.application.id, document.application.kafka_streams))
            for document in documents
        ],
        partitions,
    )
    return {each.application.id: each for each in compiled if each.application.id in changed}


def _read_recorded_version(record: SetupRecord | None) -> KafkaStreamsVersion | None:
    return read_version(record.kafka_streams) if record is not None else None


def _with_version(document: TopologyDocument, version: KafkaStreamsVersion) -> TopologyDocument:
    return attrs.evolve(document, application=attrs.evolve(document.application, kafka_streams=version))
