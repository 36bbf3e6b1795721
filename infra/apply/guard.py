"""The hook that lets no topic be deleted but those that the plan deletes, and so with ACLs."""

from collections.abc import Collection

import pulumi

from infra.apply.stack_state import ACL_TYPE

_NAME = "headwater:keep-topics"


def deletion_guard(deletable: Collection[str]) -> pulumi.ResourceHook:
    """Return a hook that raises, in previews too, unless the topic or ACL is one of `deletable`, by name.

    The engine finds it by its name for those that this run does not register.
    """

    def refuse(args: pulumi.ResourceHookArgs) -> None:
        if args.name not in deletable:
            raise pulumi.RunError(_STILL_NEEDED if args.type == ACL_TYPE else _KEPT.format(args.name))

    return pulumi.ResourceHook(_NAME, refuse, pulumi.ResourceHookOptions(on_dry_run=True))


_KEPT = (
    "topic {} is not deleted: Headwater deletes topics of retired applications only "
    "(lifecycle: retired; lifecycle: released keeps the topics)"
)
_STILL_NEEDED = (
    "this ACL is not revoked: the documents need it (remove `acls` to revoke all of an application's; "
    "lifecycle: released keeps them)"
)
