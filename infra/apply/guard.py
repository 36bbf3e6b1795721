"""The Pulumi hook that refuses to delete topics and ACLs outside the plan."""

from collections.abc import Collection

import pulumi

from infra.apply.stack_state import ACL_TYPE

_NAME = "headwater:keep-topics"


def deletion_guard(deletable: Collection[str]) -> pulumi.ResourceHook:
    """Return a hook that fails unless the topic or ACL is in `deletable`, by name; it also runs in previews.

    The engine finds the hook by name for resources that this run does not register.
    """

    def refuse(args: pulumi.ResourceHookArgs) -> None:
        if args.name not in deletable:
            raise pulumi.RunError(_ACL_REQUIRED if args.type == ACL_TYPE else _TOPIC_KEPT.format(args.name))

    return pulumi.ResourceHook(_NAME, refuse, pulumi.ResourceHookOptions(on_dry_run=True))


_TOPIC_KEPT = (
    "topic {} is not deleted: Headwater deletes only topics of retired applications "
    "(lifecycle: retired; lifecycle: released keeps the topics)"
)
_ACL_REQUIRED = (
    "this ACL is not revoked: the documents require it (remove `acls` to revoke all ACLs of an application; "
    "lifecycle: released keeps them)"
)
