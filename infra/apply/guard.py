"""The hook that lets no topic be deleted but those that the plan deletes."""

from collections.abc import Collection

import pulumi

_NAME = "headwater:keep-topics"


def deletion_guard(deletable: Collection[str]) -> pulumi.ResourceHook:
    """Return a hook that raises, in previews too, unless the topic is one of `deletable`.

    The engine finds it by its name for topics that this run does not register.
    """

    def refuse(args: pulumi.ResourceHookArgs) -> None:
        if args.name not in deletable:
            raise pulumi.RunError(
                f"topic {args.name} is not deleted: Headwater deletes topics of retired applications only "
                "(lifecycle: retired; lifecycle: released keeps the topics)"
            )

    return pulumi.ResourceHook(_NAME, refuse, pulumi.ResourceHookOptions(on_dry_run=True))
