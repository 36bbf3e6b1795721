"""Make the plan of a run from compiled applications, a snapshot of the cluster and setup records."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.compiler.renumbering import origin_digests
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication, SubTopology
from headwater.model.problems import PLAN, Caller, Problem
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.model.topology import Lifecycle, Sink
from headwater.model.versions import read_any_version
from headwater.planner.acls.decide import acl_actions, acls_after, revoked_while_running
from headwater.planner.document_settings import document_settings, setting_changes
from headwater.planner.phrases import counted, few_names
from headwater.planner.plans import AclAction, ActionKind, ApplicationPlan, Plan, PlanPolicy, TopicAction
from headwater.planner.policies.topic_settings import without_ignored
from headwater.planner.processors import (
    declared_processors,
    estimated_expansion,
    expansion_target,
    initial_processors,
    kept_partitions,
    processors_to_expand,
)
from headwater.planner.rules import APPLICATION_RULES, OTHER_CLUSTER_RULES, RUN_RULES
from headwater.planner.rules.ownership import twice_managed
from headwater.planner.run import ActiveApplication, Run, expected_cluster, other_subscription
from headwater.planner.topic_actions import (
    delete_application,
    release_application,
    retire_application,
    topic_actions,
)
from headwater.planner.transfers import Transfers
from headwater.planner.upgrade.changes import NO_DOWNGRADES
from headwater.planner.waves import wave_numbers


def plan(
    compiled: Sequence[CompiledApplication],
    snapshot: ClusterSnapshot,
    records: Mapping[str, SetupRecord],
    policy: PlanPolicy,
    elapsed_ms: int = 0,
    *,
    caller: Caller = PLAN,
    earlier: Mapping[str, CompiledApplication] | None = None,
) -> Plan:
    """Decide what a run does to the cluster. Collects every problem and raises none.

    Args:
        compiled: every application of the run, compiled with the counts of `snapshot`.
        snapshot: the cluster, with the topics and groups of `snapshot_request`.
        records: application id → setup record of the last finished run.
        policy: what holds for the whole stack.
        elapsed_ms: milliseconds that loading and reading have taken so far, checked against `setup.timeout`.
        caller: who plans; the texts of the problems depend on it.
        earlier: applications compiled for the version of Kafka Streams in their record (`compile_recorded`).
    """
    ordered = tuple(sorted(compiled, key=lambda application: application.application.id))
    is_other_cluster = expected_cluster(records, policy, snapshot.cluster_id) != snapshot.cluster_id
    transfers = Transfers.from_records(
        ordered, _without_ids(records) if is_other_cluster else records, snapshot
    )
    active = tuple(
        ActiveApplication.from_snapshot(
            each,
            snapshot,
            transfers.records.get(each.application.id),
            predecessor=records.get(each.application.renamed_from or ""),
            received=transfers.moving_to(each.application.id),
            earlier=(earlier or {}).get(each.application.id),
            elapsed_ms=elapsed_ms,
            caller=caller,
        )
        for each in ordered
        if each.application.lifecycle is Lifecycle.ACTIVE
    )
    actions = [
        without_ignored(application.id, part, policy.policies)
        for application, part in zip(active, _in_waves(active), strict=True)
    ]
    all_actions = tuple(action for part in actions for action in part)
    run = Run(ordered, active, snapshot, transfers.records, policy, all_actions)
    acls = acl_actions(run)
    parts = (
        _complete_plan(part, acls.get(part.application_id, ()), records, transfers)
        for part in (*_active_plans(active, actions), *_ending_plans(run))
    )
    applications = tuple(sorted(parts, key=lambda part: part.application_id))
    return Plan(
        applications=applications,
        problems=tuple(_find_problems(run, applications, acls)),
        cluster_id=snapshot.cluster_id,
        ownership=run.ownership,
        ownership_settings=run.ownership_settings,
    )


def _record_after(application: ActiveApplication, actions: Iterable[TopicAction]) -> SetupRecord:
    """Return the record to write. The ids of topics that the run creates are empty: they are read later."""
    before = application.record or application.predecessor
    return SetupRecord(
        application_id=application.id,
        topics={
            action.name: RecordedTopic(
                name=action.name,
                topic_id=action.live.topic_id if action.live else "",
                partitions=action.partitions,
                is_sink=_is_sink(application, action),
                is_retired=action.kind in (ActionKind.RETIRE, ActionKind.DELETE),
            )
            for action in sorted(actions, key=lambda action: action.name)
            if action.kind is not ActionKind.RELEASE
        },
        initial=initial_processors(application),
        initial_processors=(before.initial_processors if before else 0) or _recorded_processors(application),
        generated=frozenset(topic.name for topic in application.compiled.internal_topics if topic.generated),
        origins=origin_digests(application.compiled),
        cluster_id=application.snapshot.cluster_id,
        kafka_streams=str(application.compiled.application.kafka_streams),
        settings=document_settings(application.compiled),
    )


def _recorded_processors(application: ActiveApplication) -> int:
    """Return one processor for each task of the largest sub-topology; 0 = not known yet."""
    if application.compiled.is_observed:
        return 0
    return (
        max((part.tasks for part in application.compiled.subtopologies if not part.is_global), default=0) or 1
    )


def _is_sink(application: ActiveApplication, action: TopicAction) -> bool:
    if action.topic is not None:
        return isinstance(action.topic, Sink)
    recorded = application.record.topics.get(action.name) if application.record else None
    return recorded is not None and recorded.is_sink


def _in_waves(active: Sequence[ActiveApplication]) -> list[tuple[TopicAction, ...]]:
    """Return the actions of each application, with wave numbers across all applications."""
    actions = [topic_actions(application) for application in active]
    growing = {action.name for part in actions for action in part if action.added_partitions}
    numbers = wave_numbers((application.compiled for application in active), growing)
    return [
        tuple(
            sorted(
                (attrs.evolve(action, wave=numbers.get(action.name, 0)) for action in part),
                key=lambda action: (action.wave, action.name),
            )
        )
        for part in actions
    ]


def _active_plans(
    active: Sequence[ActiveApplication], actions: Sequence[tuple[TopicAction, ...]]
) -> Iterator[ApplicationPlan]:
    for application, part in zip(active, actions, strict=True):
        yield ApplicationPlan(
            application_id=application.id,
            compiled=application.compiled,
            actions=part,
            record=_record_after(application, part),
            notes=tuple(_notes_of(application, part)),
            settings=setting_changes(application.compiled, application.record),
        )


def _complete_plan(
    part: ApplicationPlan,
    actions: tuple[AclAction, ...],
    records: Mapping[str, SetupRecord],
    transfers: Transfers,
) -> ApplicationPlan:
    """Return `part` with its ACLs, the record as it is in the stack, and notes about sinks that move away."""
    record = attrs.evolve(part.record, acls=acls_after(actions)) if part.record else None
    notes = (*part.notes, *transfers.describe_moves_from(part.application_id))
    recorded = records.get(part.application_id)
    return attrs.evolve(part, acls=actions, record=record, recorded=recorded, notes=notes)


def _notes_of(application: ActiveApplication, actions: Sequence[TopicAction]) -> Iterator[str]:
    if application.record is None:
        yield f"first setup ({application.config.setup_mode.value})"
    yield from _version_note(application)
    profile = application.compiled.application.cluster_profile
    if profile is not None:
        is_recognized = application.compiled.application.is_profile_recognized
        origin = "recognized from the cluster" if is_recognized else "declared"
        yield f"cluster profile {profile.name} ({origin})"
    yield from _running_note(application)
    yield from _processor_notes(application)
    adopted = sum(action.kind is ActionKind.ADOPT for action in actions)
    if adopted:
        changed = sum(action.kind is ActionKind.ADOPT and bool(action.changes) for action in actions)
        settings = f", settings of {changed} changed as listed" if changed else ", settings unchanged"
        yield f"{counted(adopted, 'topic')} that Headwater did not create: adopted{settings}"


def _version_note(application: ActiveApplication) -> Iterator[str]:
    """Yield whether instances of the recorded and of the declared version may run at the same time.

    What another version builds is not known for documents without calls, but an earlier one is never safe.
    """
    upgrade, after = application.upgrade, application.compiled.application.kafka_streams
    recorded = read_any_version(application.record.kafka_streams) if application.record else None
    if upgrade is not None:
        restart = "is safe" if upgrade.is_rolling else f"is not safe: {upgrade.obstacle}"
        yield f"Kafka Streams {upgrade.before} to {upgrade.after}: a rolling restart {restart}"
    elif recorded is not None and recorded.is_later_release_than(after):
        yield f"Kafka Streams {recorded} to {after}: a rolling restart is not safe: {NO_DOWNGRADES}"
    if recorded is not None and recorded.is_later_release_than(after) and application.compiled.is_stateful:
        yield "stop all instances, and delete their local state before one starts with the earlier version"


def _running_note(application: ActiveApplication) -> Iterator[str]:
    """Yield a note if the running application has another topology, for example before its deployment."""
    group = application.snapshot.groups.get(application.id)
    other = None if group is None else other_subscription(application.compiled, group)
    if other is not None:
        differences = [
            *([f"not {few_names(other.declared)}"] if other.declared else []),
            *([f"but {few_names(other.running)}"] if other.running else []),
        ]
        yield f"the running application reads other topics than the document: {', '.join(differences)}"


def _processor_notes(application: ActiveApplication) -> Iterator[str]:
    """Return the declared processors: one text for all sub-topologies with the same number of partitions."""
    parts: defaultdict[int, list[SubTopology]] = defaultdict(list)
    target = expansion_target(application)
    shown = counted(max(application.compiled.application.processors or 0, target or 0), "processor")
    present = processors_to_expand(application) if target is None else application.present
    kept, larger = kept_partitions(application), 0
    for processors in declared_processors(application):
        parts[processors.part.tasks].append(processors.part)
        larger = processors.larger
    uneven = f", {larger} of them with twice as many keys as the others" if larger else ""
    for partitions, same in sorted(parts.items()):
        ids = ", ".join(str(part.id) for part in same)
        estimate = None if present is None else estimated_expansion(application, same)
        yield (
            f"{'sub-topology' if len(same) == 1 else 'sub-topologies'} {ids}: "
            f"{shown if present is None else f'{present} of {shown}'} "
            f"for {counted(partitions, 'partition')}{uneven}"
            + (f" (changelog topics keep {kept})" if kept else "")
            + (f", {estimate.amount} to read ({estimate.duration})" if estimate else "")
            + (f", being expanded to {target}" if target else "")
        )


def _ending_plans(run: Run) -> Iterator[ApplicationPlan]:
    documents = {application.application.id: application for application in run.compiled}
    for record in run.released:
        yield release_application(record, documents.get(record.application_id), run.snapshot)
    for record in run.retiring:
        yield retire_application(record, documents.get(record.application_id), run.evidence)
    for record in run.deleted:
        yield delete_application(record, run.snapshot)


def _without_ids(records: Mapping[str, SetupRecord]) -> Mapping[str, SetupRecord]:
    """Return the records without the ids of topics: on another cluster, no topic has one of them."""
    return {
        id_: attrs.evolve(
            record,
            topics={name: attrs.evolve(topic, topic_id="") for name, topic in record.topics.items()},
        )
        for id_, record in records.items()
    }


def _find_problems(
    run: Run, applications: Sequence[ApplicationPlan], acls: Mapping[str, Sequence[AclAction]]
) -> Iterator[Problem]:
    """Yield all problems; a problem without a location gets the location of its application's document."""
    locations = {compiled.application.id: compiled.application.at for compiled in run.compiled}
    for problem in _unlocated_problems(run, applications, acls):
        yield problem.located(location=locations.get(problem.application or ""))


def _unlocated_problems(
    run: Run, applications: Sequence[ApplicationPlan], acls: Mapping[str, Sequence[AclAction]]
) -> Iterator[Problem]:
    is_other_cluster = run.expected_cluster != run.snapshot.cluster_id
    for rule in OTHER_CLUSTER_RULES if is_other_cluster else RUN_RULES:
        yield from rule(run)
    for application in run.active:
        for problem in application.compiled.problems:
            yield problem.located(application=application.id)
        for application_rule in () if is_other_cluster else APPLICATION_RULES:
            yield from application_rule(application)
    yield from twice_managed(applications)
    if not is_other_cluster:
        yield from revoked_while_running(run, acls)
