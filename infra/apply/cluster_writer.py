"""Repairs of the cluster by the Kafka admin client."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import pulumi
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # names that are public there all the same
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from infra.apply.registration import Repair
from infra.apply.rehearsal import denials
from infra.model.acls import Acl
from infra.model.problems import Problem
from infra.observe import Connection
from infra.observe.acl_bindings import acl_binding
from infra.planner import Plan

if TYPE_CHECKING:
    from concurrent.futures import Future

_TIMEOUT_SECONDS = 60


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
        return tuple(denials(self._admin(), plan)) if plan.has_changes else ()

    def repair(self, repairs: Sequence[Repair]) -> None:
        admin = self._admin()
        failures = [
            *_failures(_create(admin, [repair for repair in repairs if repair.create])),
            *_failures(_expand(admin, [r for r in repairs if r.partitions and not r.create])),
            *_failures(_configure(admin, [r for r in repairs if r.config and not r.create])),
            *_failures(_grant(admin, [repair.acl for repair in repairs if repair.acl is not None])),
        ]
        if failures:
            raise pulumi.RunError("could not repair " + "; ".join(failures))

    def _admin(self) -> AdminClient:
        # A logger outside the hierarchy: without one librdkafka writes to stderr, which Pulumi shows.
        logger = logging.Logger("librdkafka")  # noqa: LOG001
        logger.addHandler(logging.NullHandler())
        return AdminClient(self.connection.confluent(), logger=logger)


def _create(admin: AdminClient, repairs: Iterable[Repair]) -> Mapping[str, "Future[Any]"]:
    topics = [
        NewTopic(
            repair.name,
            num_partitions=repair.partitions or -1,
            replication_factor=repair.replication_factor,
            config={key: value for key, value in repair.config.items() if value is not None},
        )
        for repair in repairs
    ]
    return admin.create_topics(topics, operation_timeout=_TIMEOUT_SECONDS) if topics else {}


def _expand(admin: AdminClient, repairs: Iterable[Repair]) -> Mapping[str, "Future[Any]"]:
    partitions = [NewPartitions(repair.name, repair.partitions or 0) for repair in repairs]
    return admin.create_partitions(partitions, operation_timeout=_TIMEOUT_SECONDS) if partitions else {}


def _configure(admin: AdminClient, repairs: Iterable[Repair]) -> Mapping[str, "Future[Any]"]:
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            repair.name,
            incremental_configs=[_entry(key, value) for key, value in repair.config.items()],
        )
        for repair in repairs
    ]
    if not resources:
        return {}
    return {resource.name: future for resource, future in admin.incremental_alter_configs(resources).items()}


def _grant(admin: AdminClient, acls: Iterable[Acl]) -> Mapping[str, "Future[Any]"]:
    bindings = {acl_binding(acl): acl.text for acl in acls}
    futures = admin.create_acls(list(bindings)) if bindings else {}
    return {bindings[binding]: future for binding, future in futures.items()}


def _entry(key: str, value: str | None) -> ConfigEntry:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(key, value or "", incremental_operation=operation)


def _failures(results: Mapping[str, "Future[Any]"]) -> Iterator[str]:
    for name, future in results.items():
        try:
            future.result(timeout=_TIMEOUT_SECONDS)
        except KafkaException as error:
            yield f"{name}: {error.args[0].str()}"
        except TimeoutError:
            yield f"{name}: no answer within {_TIMEOUT_SECONDS} s"
