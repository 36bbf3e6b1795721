"""Repairs of the cluster by the Kafka admin client."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import pulumi
from confluent_kafka.admin import AdminClient

from infra.apply.registration import Repair
from infra.apply.rehearsal import denials
from infra.change import admin_client, change_topics, failures
from infra.model.acls import Acl
from infra.model.problems import Problem
from infra.observe import Connection
from infra.observe.acl_bindings import acl_binding
from infra.planner import Plan

if TYPE_CHECKING:
    from concurrent.futures import Future


class ClusterWriter(Protocol):
    """Changes topics and ACLs."""

    def denials(self, plan: Plan) -> Sequence[Problem]:
        """Return a problem (NotAuthorized) for each thing of the plan that the user may not do."""
        ...

    def repair(self, repairs: Sequence[Repair]) -> None:
        """Do all of it; raises `pulumi.RunError` naming every topic that could not be repaired."""
        ...


@attrs.frozen
class KafkaClusterWriter:
    """Repairs by the Kafka admin client, in four batched calls whatever the number of topics."""

    connection: Connection

    def denials(self, plan: Plan) -> Sequence[Problem]:
        return tuple(denials(admin_client(self.connection), plan)) if plan.has_changes else ()

    def repair(self, repairs: Sequence[Repair]) -> None:
        admin = admin_client(self.connection)
        failed = [
            *change_topics(admin, repairs),
            *failures(_grant(admin, [repair.acl for repair in repairs if repair.acl is not None])),
        ]
        if failed:
            raise pulumi.RunError("could not repair " + "; ".join(failed))


def _grant(admin: AdminClient, acls: Iterable[Acl]) -> Mapping[str, "Future[Any]"]:
    bindings = {acl_binding(acl): acl.text for acl in acls}
    futures = admin.create_acls(list(bindings)) if bindings else {}
    return {bindings[binding]: future for binding, future in futures.items()}
