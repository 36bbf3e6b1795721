"""Have the provider connect before the engine has it delete topics.

That comes after the program's end, several topics at a time, and several that ask while the provider connects
may find each other's connection half open ("broker not connected").
"""

from contextlib import suppress

import pulumi

from infra.planner import ActionKind, Plan

_GET_TOPIC = "kafka:index:getTopic"


async def connect_for_deletions(provider: pulumi.ProviderResource, plan: Plan) -> None:
    """Ask for one of the topics that `up` is to delete; what is wrong with it the deletion will tell."""
    deleted = [action.name for action in plan.actions if action.kind is ActionKind.DELETE]
    if deleted and not pulumi.runtime.is_dry_run():
        with suppress(Exception):
            options = pulumi.InvokeOptions(provider=provider)
            await pulumi.runtime.invoke_async(_GET_TOPIC, {"name": deleted[0]}, options)
