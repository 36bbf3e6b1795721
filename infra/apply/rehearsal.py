"""Whether the brokers would let this user do all that a plan does, asked before anything is done.

Requests that only validate are authorized like real ones. For deletions there are none: there the brokers are
asked what the user may do.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # names that are public there all the same
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from infra.model.acls import Operation
from infra.model.problems import Problem
from infra.observe.kafka_errors import is_denial, not_authorized
from infra.planner import ActionKind, Plan, TopicAction

if TYPE_CHECKING:
    from concurrent.futures import Future

_SECONDS = 60
_WHY = "A run that may not do all of it would end halfway. Nothing has been changed."


def denials(admin: AdminClient, plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each topic that the user may not change as planned, and one for ACLs.

    Other objections of the brokers are left to the run itself.
    """
    actions = tuple(plan.actions)
    new = [action for action in actions if action.kind in (ActionKind.CREATE, ActionKind.RECREATE)]
    growing = [action for action in actions if action.added_partitions]
    # The provider writes the settings with every update of a topic.
    changing = [action for action in actions if action.config and (action.added_partitions or action.changes)]
    deleted = [action.name for action in actions if action.kind is ActionKind.DELETE]
    yield from _denied(_creations(admin, new), "create topic", Operation.CREATE)
    yield from _denied(_expansions(admin, growing), "add partitions to topic", Operation.ALTER)
    yield from _denied(_settings(admin, changing), "change the settings of topic", Operation.ALTER_CONFIGS)
    yield from _undeletable(admin, deleted)
    if any(action.is_change for application in plan.applications for action in application.acls):
        yield from _ungrantable(admin)


def _creations(admin: AdminClient, actions: Iterable[TopicAction]) -> Mapping[str, "Future[Any]"]:
    topics = [
        NewTopic(action.name, num_partitions=action.partitions, replication_factor=action.replication_factor)
        for action in actions
    ]
    return admin.create_topics(topics, validate_only=True, request_timeout=_SECONDS) if topics else {}


def _expansions(admin: AdminClient, actions: Iterable[TopicAction]) -> Mapping[str, "Future[Any]"]:
    wanted = [NewPartitions(action.name, action.partitions) for action in actions]
    return admin.create_partitions(wanted, validate_only=True, request_timeout=_SECONDS) if wanted else {}


def _settings(admin: AdminClient, actions: Iterable[TopicAction]) -> Mapping[str, "Future[Any]"]:
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            action.name,
            incremental_configs=[
                ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
                for key, value in action.config.items()
            ],
        )
        for action in actions
    ]
    if not resources:
        return {}
    asked = admin.incremental_alter_configs(resources, validate_only=True, request_timeout=_SECONDS)
    return {resource.name: future for resource, future in asked.items()}


def _denied(asked: Mapping[str, "Future[Any]"], what: str, operation: Operation) -> Iterator[Problem]:
    for name, future in asked.items():
        error = _error(future)
        if error is not None and is_denial(error):
            yield not_authorized(error, what, name, operation, _WHY)


def _undeletable(admin: AdminClient, names: Sequence[str]) -> Iterator[Problem]:
    if not names:
        return
    asked = admin.describe_topics(
        TopicCollection(list(names)), include_authorized_operations=True, request_timeout=_SECONDS
    )
    for name, future in asked.items():
        if _error(future) is None and AclOperation.DELETE not in (
            future.result().authorized_operations or ()
        ):
            error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            yield not_authorized(error, "delete topic", name, Operation.DELETE, _WHY)


def _ungrantable(admin: AdminClient) -> Iterator[Problem]:
    asked = admin.describe_cluster(include_authorized_operations=True, request_timeout=_SECONDS)
    if _error(asked) is None and AclOperation.ALTER not in (asked.result().authorized_operations or ()):
        error = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
        yield not_authorized(error, "change the ACLs of", "the cluster", Operation.ALTER, _WHY)


def _error(future: "Future[Any]") -> KafkaError | None:
    """Return what the brokers object to; that they do not answer is none of it."""
    try:
        future.result(timeout=_SECONDS)
    except KafkaException as error:
        objection: KafkaError = error.args[0]
        return objection
    return None
