"""The Pulumi hook that refuses to delete topics and ACLs outside the plan."""

import asyncio
from collections.abc import Collection, Mapping

import attrs
import pulumi

from infra.apply.stack_state import ACL_TYPE
from infra.model.problems import ProblemsError
from infra.observe import ClusterReader

_NAME = (
    "headwater:keep-topics (to destroy the stack, set `lifecycle: released` in its documents and run `pulumi "
    "up` first; the topics stay)"
)
"""`pulumi destroy` without the program stops at once, and shows only the names of hooks."""

_FORMER_NAME = "headwater:keep-topics"
"""The name in the state of stacks that an earlier version has set up."""


@attrs.frozen
class Deletable:
    """What the plan deletes: the names of ACL resources, and topics with the ids that were retired."""

    topics: Mapping[str, str] = attrs.field(factory=dict)
    acls: Collection[str] = ()


def deletion_guard(deletable: Deletable, reader: ClusterReader) -> pulumi.ResourceHook:
    """Return a hook that fails unless the plan deletes the topic or ACL; it also runs in previews.

    Kafka deletes a topic by name. So the hook reads the topic's id right before the deletion: another topic
    may have got the name since the plan. The engine finds the hook by name for resources that this run does
    not register.
    """

    async def refuse(args: pulumi.ResourceHookArgs) -> None:
        if args.type == ACL_TYPE:
            if args.name not in deletable.acls:
                raise pulumi.RunError(_ACL_REQUIRED)
        elif args.name not in deletable.topics:
            raise pulumi.RunError(_TOPIC_KEPT.format(args.name))
        elif not pulumi.runtime.is_dry_run():
            await asyncio.to_thread(_check_id, reader, args.name, deletable.topics[args.name])

    options = pulumi.ResourceHookOptions(on_dry_run=True)
    pulumi.ResourceHook(_FORMER_NAME, refuse, options)
    return pulumi.ResourceHook(_NAME, refuse, options)


def _check_id(reader: ClusterReader, name: str, retired: str) -> None:
    try:
        found = reader.topic_ids([name]).get(name, retired)
    except ProblemsError as error:
        raise pulumi.RunError(f"topic {name} is not deleted: its id cannot be read ({error})") from None
    if found != retired:
        raise pulumi.RunError(_TOPIC_REPLACED.format(name, retired, found))


_TOPIC_KEPT = (
    "topic {} is not deleted: Headwater deletes only topics of retired applications "
    "(lifecycle: retired; lifecycle: released keeps the topics)"
)
_TOPIC_REPLACED = (
    "topic {} is not deleted: it was deleted and re-created during this run (the topic that was retired has "
    "the id {}, this one {}). Run again: the plan says what to do"
)
_ACL_REQUIRED = (
    "this ACL is not revoked: the documents require it (remove `acls` to revoke all ACLs of an application; "
    "lifecycle: released keeps them)"
)
