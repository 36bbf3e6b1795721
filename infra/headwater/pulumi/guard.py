"""Deletions: which topics and ACLs the plan deletes, and the Pulumi hook that refuses all others."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

import attrs
import pulumi

from headwater.kafka import ClusterReader
from headwater.kafka.evidence import with_evidence
from headwater.model.cluster import EvidenceRequest
from headwater.model.problems import ProblemsError
from headwater.planner import AclActionKind, ActionKind, Plan
from headwater.planner.rules.ownership import find_obstacles
from headwater.planner.run import Run
from headwater.pulumi.cluster_writer import ClusterWriter
from headwater.pulumi.component import Target
from headwater.pulumi.planning import Planned
from headwater.pulumi.stack_state import ACL_TYPE, acl_name

_NAME = (
    "headwater:keep-topics (to destroy the stack, set `lifecycle: released` in its documents and run `pulumi "
    "up` first; the topics stay)"
)
"""`pulumi destroy` without the program stops at once, and shows only the names of hooks."""

_FORMER_NAME = "headwater:keep-topics"
"""The name in the state of stacks that an earlier version has set up."""


@attrs.frozen
class Deletable:
    """What the plan deletes: the names of ACL resources, and topics with the ids that were retired.

    `topics` are deleted by the provider: an earlier version of Headwater has retired them. Those in `dropped`
    only leave the state, because Headwater deletes them itself.
    """

    topics: Mapping[str, str] = attrs.field(factory=dict)
    acls: Collection[str] = ()
    dropped: Collection[str] = ()


@attrs.frozen
class DeletionCheck:
    """Reads the evidence for the topics that `run` deletes again: others may use them since the plan.

    `owners` is topic → the application with which it is deleted. `reader` is used for nothing else meanwhile:
    librdkafka (2.16) allows no other pending request while it reads groups.
    """

    run: Run
    owners: Mapping[str, str]
    reader: ClusterReader

    def obstacles_by_topic(self) -> Mapping[str, Sequence[str]]:
        """Return topic → phrases for the reasons not to delete it; raises `ProblemsError`."""
        planned = self.run.snapshot
        request = EvidenceRequest(
            topics=frozenset(self.owners), offsets_of=None, with_ownership=True, with_ownership_policy=True
        )
        found = with_evidence(self.reader, attrs.evolve(planned, ownership=None, evidence=None), request)
        if planned.ownership is not None and found.evidence is not None:
            found = attrs.evolve(found, ownership=found.evidence.ownership)
        run = attrs.evolve(self.run, snapshot=found)
        return {
            name: [each.text for each in find_obstacles(run, owner, planned.topics[name], is_prepared=True)]
            for name, owner in self.owners.items()
        }


def deletion_guard(
    deletable: Deletable, reader: ClusterReader, check: DeletionCheck | None = None
) -> pulumi.ResourceHook:
    """Return a hook that fails unless the plan deletes the topic or ACL; it also runs in previews.

    Kafka deletes a topic by name. So the hook reads the topic's id right before the deletion: another topic
    may have got the name since the plan. Before the first deletion of a run, `check` reads the evidence of
    all topics again. The engine finds the hook by name for resources that this run does not register.
    """
    found: dict[str, Sequence[str]] = {}
    reading = asyncio.Lock()

    async def check_evidence(name: str) -> None:
        async with reading:
            if check is not None and name not in found:
                found.update(await asyncio.to_thread(_obstacles_or_unreadable, check))
        if found.get(name):
            raise pulumi.RunError(_TOPIC_IN_USE.format(name, "; ".join(found[name])))

    async def refuse(args: pulumi.ResourceHookArgs) -> None:
        if args.type == ACL_TYPE:
            if args.name not in deletable.acls:
                raise pulumi.RunError(_ACL_REQUIRED)
        elif args.name in deletable.dropped:
            return
        elif args.name not in deletable.topics:
            raise pulumi.RunError(_TOPIC_KEPT.format(args.name))
        elif not pulumi.runtime.is_dry_run():
            await check_evidence(args.name)
            await asyncio.to_thread(_check_id, reader, args.name, deletable.topics[args.name])

    options = pulumi.ResourceHookOptions(on_dry_run=True)
    pulumi.ResourceHook(_FORMER_NAME, refuse, options)
    return pulumi.ResourceHook(_NAME, refuse, options)


def _obstacles_or_unreadable(check: DeletionCheck) -> Mapping[str, Sequence[str]]:
    try:
        return check.obstacles_by_topic()
    except ProblemsError as error:
        return dict.fromkeys(check.owners, (f"not readable: {error}",))


def _check_id(reader: ClusterReader, name: str, retired: str) -> None:
    try:
        found = reader.topic_ids([name]).get(name, retired)
    except ProblemsError as error:
        raise pulumi.RunError(f"topic {name} is not deleted: its id cannot be read ({error})") from None
    if found != retired:
        raise pulumi.RunError(_TOPIC_REPLACED.format(name, retired, found))


def plan_guard(
    planned: Planned, target: Target, new_reader: Callable[[], ClusterReader]
) -> pulumi.ResourceHook:
    """Return the hook of a plan.

    It is always registered: the engine also calls it for resources that this run omits.
    """
    if planned.plan is None or planned.run is None:
        raise ValueError("no plan")
    deletable = _deletable_topics(planned.plan)
    check = _deletion_check(planned, deletable.topics, new_reader) if deletable.topics else None
    return deletion_guard(deletable, target.reader, check)


def _deletion_check(
    planned: Planned, names: Collection[str], new_reader: Callable[[], ClusterReader]
) -> DeletionCheck:
    """Return the check of topics that the plan deletes, with a reader of its own."""
    if planned.plan is None or planned.run is None:
        raise ValueError("no plan")
    owners = {
        action.name: part.application_id
        for part in planned.plan.applications
        for action in part.actions
        if action.name in names
    }
    return DeletionCheck(planned.run, owners, new_reader())


def delete_retired_topics(
    planned: Planned, writer: ClusterWriter, new_reader: Callable[[], ClusterReader]
) -> None:
    """Delete retired topics by their ids, after the evidence was read again.

    Their resources leave the state afterwards, when the program has ended. If it ends before, the next run
    does the same. Raises `pulumi.RunError` if another client uses a topic since the plan was made, or if a
    deletion failed.
    """
    ids = {} if planned.plan is None else _retired_ids(planned.plan)
    if not ids:
        return
    try:
        found = _deletion_check(planned, ids, new_reader).obstacles_by_topic()
    except ProblemsError as error:
        raise pulumi.RunError(f"no topic is deleted: the evidence cannot be read ({error})") from None
    if reasons := [f"{name}: {'; '.join(each)}" for name, each in sorted(found.items()) if each]:
        raise pulumi.RunError(
            "no topic is deleted: " + "; ".join(reasons) + ". Run again: the plan says what to do"
        )
    writer.delete_topics(ids)


def _retired_ids(plan: Plan) -> Mapping[str, str]:
    """Return the ids of topics that Headwater deletes itself, not the provider."""
    return {
        action.name: action.live.topic_id
        for part in plan.applications
        for action in part.actions
        if action.kind is ActionKind.DELETE and action.live is not None
        if part.recorded is not None and part.recorded.topics[action.name].is_retired
    }


def _deletable_topics(plan: Plan) -> Deletable:
    dropped = _retired_ids(plan).keys()
    deleted = (action for action in plan.actions if action.kind is ActionKind.DELETE)
    return Deletable(
        topics={
            action.name: action.live.topic_id
            for action in deleted
            if action.live is not None and action.name not in dropped
        },
        dropped=dropped,
        acls=frozenset(
            acl_name(application.application_id, action.acl)
            for application in plan.applications
            for action in application.acls
            if action.kind is AclActionKind.REVOKE
        ),
    )


_TOPIC_KEPT = (
    "topic {} is not deleted: Headwater deletes only topics of retired applications "
    "(lifecycle: retired; lifecycle: released keeps the topics)"
)
_TOPIC_REPLACED = (
    "topic {} is not deleted: it was deleted and re-created during this run (the topic that was retired has "
    "the id {}, this one {}). Run again: the plan says what to do"
)
_TOPIC_IN_USE = "topic {} is not deleted: {}. Run again: the plan says what to do"
_ACL_REQUIRED = (
    "this ACL is not revoked: the documents require it (remove `acls` to revoke all ACLs of an application; "
    "lifecycle: released keeps them)"
)
