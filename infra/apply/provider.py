"""The Pulumi provider of a Kafka cluster."""

from contextlib import suppress

import pulumi
import pulumi_kafka

from infra.observe import Connection
from infra.planner import ActionKind, Plan

_GET_TOPIC = "kafka:index:getTopic"
_SECRETS = frozenset({"sasl_password", "client_key", "client_key_passphrase"})


def kafka_provider(connection: Connection) -> pulumi_kafka.Provider:
    """Return the provider for `connection`; its secrets are encrypted in the state."""
    arguments = connection.provider()
    secrets = {name: pulumi.Output.secret(arguments[name]) for name in _SECRETS & arguments.keys()}
    return pulumi_kafka.Provider("kafka", **{**arguments, **secrets})


async def connect_for_deletions(provider: pulumi.ProviderResource, plan: Plan) -> None:
    """Make the provider connect before the engine deletes topics with it.

    The engine deletes after the end of the program, several topics at a time. The provider connects on its
    first request, and concurrent requests at that moment may fail with "broker not connected". An error is
    ignored here, because the deletion reports it.
    """
    deleted = [action.name for action in plan.actions if action.kind is ActionKind.DELETE]
    if deleted and not pulumi.runtime.is_dry_run():
        with suppress(Exception):
            options = pulumi.InvokeOptions(provider=provider)
            await pulumi.runtime.invoke_async(_GET_TOPIC, {"name": deleted[0]}, options)
