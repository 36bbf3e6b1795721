"""Access to the cluster during a run: its provider, its changes, and records of ownership."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import pulumi
import pulumi_kafka
from confluent_kafka.admin import AdminClient

from headwater.change import admin_client, await_failures, change_topics
from headwater.change.ownership import configure_topic, write_ownership
from headwater.change.topics import delete_topics
from headwater.kafka import ClusterReader, Connection
from headwater.kafka.acl_bindings import acl_binding
from headwater.model.acls import Acl
from headwater.model.problems import Problem, ProblemsError
from headwater.model.records import OwnershipChange, SetupRecord
from headwater.operations.validation import controller_problem, find_refusals
from headwater.planner import ActionKind, Plan
from headwater.planner.claims import change_after, change_before, find_race, retract_claims
from headwater.planner.rules.ownership_messages import conflict_problem
from headwater.pulumi.registration import Repair

if TYPE_CHECKING:
    from concurrent.futures import Future


class ClusterWriter(Protocol):
    """Changes topics and ACLs."""

    def find_refusals(self, plan: Plan, *, with_permissions: bool) -> Sequence[Problem]:
        """Return a problem for each planned change that the brokers refuse, or that the user may not make."""
        ...

    def controller_problem(self, topic: str) -> Problem | None:
        """Return a warning that the controller does not answer, or that a quota delays its changes.

        `topic` is the name of any topic.
        """
        ...

    def repair(self, repairs: Sequence[Repair]) -> None:
        """Make all repairs; raises `pulumi.RunError`, which names each topic and ACL with the reason."""
        ...

    def delete_topics(self, ids: Mapping[str, str]) -> None:
        """Delete the topics with these ids; `ids` is name → id.

        Raises `pulumi.RunError` if some remain; the message names each with the reason.
        """
        ...

    def configure_ownership(self, settings: Mapping[str, str]) -> Sequence[Problem]:
        """Change settings of the topic of the ownership records; return a problem if this is refused."""
        ...

    def write_ownership(self, change: OwnershipChange) -> None:
        """Write and delete ownership records; raises `ProblemsError`."""
        ...


@attrs.frozen
class KafkaClusterWriter:
    """Uses the Kafka admin client: four batched requests, for any number of topics."""

    connection: Connection

    def find_refusals(self, plan: Plan, *, with_permissions: bool) -> Sequence[Problem]:
        if not plan.has_changes:
            return ()
        return tuple(find_refusals(self.connection, plan, with_permissions=with_permissions))

    def controller_problem(self, topic: str) -> Problem | None:
        return controller_problem(self.connection, topic)

    def repair(self, repairs: Sequence[Repair]) -> None:
        admin = admin_client(self.connection)
        failed = [
            *change_topics(admin, repairs),
            *await_failures(_grant_acls(admin, [repair.acl for repair in repairs if repair.acl is not None])),
        ]
        if failed:
            raise pulumi.RunError("could not repair " + "; ".join(failed))

    def delete_topics(self, ids: Mapping[str, str]) -> None:
        try:
            remaining = delete_topics(self.connection, ids)
        except OSError as error:
            raise pulumi.RunError(f"the retired topics are not deleted: {error}") from None
        if remaining:
            reasons = (f"{name}: {reason}" for name, reason in sorted(remaining.items()))
            raise pulumi.RunError("these topics are not deleted: " + "; ".join(reasons))

    def configure_ownership(self, settings: Mapping[str, str]) -> Sequence[Problem]:
        return configure_topic(self.connection, settings)

    def write_ownership(self, change: OwnershipChange) -> None:
        write_ownership(self.connection, change)


def _grant_acls(admin: AdminClient, acls: Iterable[Acl]) -> Mapping[str, "Future[Any]"]:
    bindings = {acl_binding(acl): acl.text for acl in acls}
    futures = admin.create_acls(list(bindings)) if bindings else {}
    return {bindings[binding]: future for binding, future in futures.items()}


def claim_applications(plan: Plan, reader: ClusterReader, writer: ClusterWriter) -> Sequence[Problem]:
    """Write the ownership records of the run; return the problems that prevent the run.

    Two stacks may claim an application at the same time. Each of them reads the records again after it has
    written its own, so at least one finds the other's. It withdraws its records.
    """
    ownership = plan.ownership
    change = change_before(plan, ownership) if ownership is not None else None
    if ownership is None or not change:
        return ()
    try:
        writer.write_ownership(change)
        lost = find_race(change, ownership, ownership.with_foreign_records(reader.read_ownership().records))
        if lost:
            writer.write_ownership(retract_claims(change, ownership))
    except ProblemsError as error:
        return error.problems
    documents = {part.application_id: part.compiled for part in plan.applications}
    return tuple(
        conflict_problem(conflict, ownership).located(location=compiled.application.at if compiled else None)
        for conflict in lost
        for compiled in (documents.get(conflict.application_id),)
    )


def protect_records(plan: Plan, writer: ClusterWriter) -> Sequence[Problem]:
    """Change the settings of the topic of the records as planned; return the problems.

    A topic that is not compacted loses records, so this is an error. Without the other settings, the records
    of this stack are as safe as before: a warning.
    """
    changes = plan.ownership_settings
    return writer.configure_ownership(changes) if changes else ()


def record_ownership(plan: Plan, recorded: Mapping[str, SetupRecord], writer: ClusterWriter) -> None:
    """Write the ownership records after the run; `recorded` is application id → record with topic ids.

    Raises:
        ProblemsError: NotAuthorized, ClusterUnreachable, RequestNotAnswered.
    """
    if plan.ownership is not None and (change := change_after(plan, plan.ownership, recorded)):
        writer.write_ownership(change)


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
    arguments = connection.provider_arguments()
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
