"""Changes of the cluster by the Kafka admin client instead of Pulumi."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import pulumi
from confluent_kafka.admin import AdminClient

from headwater.change import admin_client, change_topics, failures
from headwater.change.deletion import delete_topics
from headwater.change.ownership import configure_topic, write_ownership
from headwater.kafka import Connection
from headwater.kafka.acl_bindings import acl_binding
from headwater.model.acls import Acl
from headwater.model.problems import Problem
from headwater.model.records import OwnershipChange
from headwater.operations.validation import refusals
from headwater.planner import Plan
from headwater.pulumi.registration import Repair

if TYPE_CHECKING:
    from concurrent.futures import Future


class ClusterWriter(Protocol):
    """Changes topics and ACLs."""

    def refusals(self, plan: Plan, *, with_permissions: bool) -> Sequence[Problem]:
        """Return a problem for each planned change that the brokers refuse, or that the user may not make."""
        ...

    def repair(self, repairs: Sequence[Repair]) -> None:
        """Make all repairs.

        Raises:
            pulumi.RunError: Repairs failed; the message names each topic and ACL with the reason.
        """
        ...

    def delete_topics(self, ids: Mapping[str, str]) -> None:
        """Delete the topics with these ids; `ids` is name → id.

        Raises:
            pulumi.RunError: Some remain; the message names each with the reason.
        """
        ...

    def configure_ownership(self, settings: Mapping[str, str]) -> Sequence[Problem]:
        """Change settings of the topic of the ownership records; return a problem if this is refused."""
        ...

    def write_ownership(self, change: OwnershipChange) -> None:
        """Write and delete ownership records; raises `ProblemsError` (NotAuthorized, ClusterUnreachable)."""
        ...


@attrs.frozen
class KafkaClusterWriter:
    """Uses the Kafka admin client: four batched requests, for any number of topics."""

    connection: Connection

    def refusals(self, plan: Plan, *, with_permissions: bool) -> Sequence[Problem]:
        if not plan.has_changes:
            return ()
        return tuple(refusals(self.connection, plan, with_permissions=with_permissions))

    def repair(self, repairs: Sequence[Repair]) -> None:
        admin = admin_client(self.connection)
        failed = [
            *change_topics(admin, repairs),
            *failures(_grant(admin, [repair.acl for repair in repairs if repair.acl is not None])),
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


def _grant(admin: AdminClient, acls: Iterable[Acl]) -> Mapping[str, "Future[Any]"]:
    bindings = {acl_binding(acl): acl.text for acl in acls}
    futures = admin.create_acls(list(bindings)) if bindings else {}
    return {bindings[binding]: future for binding, future in futures.items()}
