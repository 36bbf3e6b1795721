"""The Pulumi provider of a Kafka cluster."""

from collections.abc import Mapping
from contextlib import suppress

import pulumi
import pulumi_kafka

from headwater.kafka import Connection
from headwater.planner import ActionKind, Plan

_GET_TOPIC = "kafka:index:getTopic"
_PLUGIN_VARIABLES = {
    "sasl_password": "KAFKA_SASL_PASSWORD",
    "client_key": "KAFKA_CLIENT_KEY",
    "client_key_passphrase": "KAFKA_CLIENT_KEY_PASSPHRASE",
}
"""The provider's secret arguments, and the variables in which its plugin reads them if they are not given."""


def kafka_provider(connection: Connection, variables: Mapping[str, str]) -> pulumi_kafka.Provider:
    """Return the provider for `connection`.

    Every argument is stored in the state, and everyone who can decrypt the state can read it. So a secret of
    the environment is no argument: Pulumi's engine gives it to the plugin as a variable. A secret of the
    stack's settings is encrypted in the state, as it is in the file of the stack.

    Args:
        connection: The connection to the cluster.
        variables: Secret argument → the variable of this process that has its value.
    """
    arguments = connection.provider()
    stored = {
        name: pulumi.Output.secret(arguments[name])
        for name in _PLUGIN_VARIABLES.keys() & arguments.keys() - variables.keys()
    }
    public = {name: value for name, value in arguments.items() if name not in _PLUGIN_VARIABLES}
    mappings = {variables[name]: _PLUGIN_VARIABLES[name] for name in sorted(variables.keys())}
    options = pulumi.ResourceOptions(env_var_mappings=mappings or None)
    return pulumi_kafka.Provider("kafka", **public, **stored, opts=options)


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
