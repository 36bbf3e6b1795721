"""Check whether the brokers permit this user all changes of a plan, before the first change.

The brokers authorize requests with `validate_only` like real ones. There is no such request for deletions and
ACLs; for these the brokers return the user's authorized operations.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclOperation,
    AdminClient,
)

from infra.change import request_config_changes, request_new_partitions, request_new_topics
from infra.model.acls import Operation
from infra.model.problems import Problem
from infra.observe.kafka_errors import is_denial, not_authorized
from infra.planner import ActionKind, Plan

if TYPE_CHECKING:
    from concurrent.futures import Future

_SECONDS = 60
_WHY = "A run without all permissions would stop halfway. Nothing has been changed."


def denials(admin: AdminClient, plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each topic that the user is not permitted to change as planned, and one for ACLs.

    Other errors of the brokers are ignored here; the run itself reports them.
    """
    actions = tuple(plan.actions)
    new = [action for action in actions if action.kind in (ActionKind.CREATE, ActionKind.RECREATE)]
    expanding = [action for action in actions if action.added_partitions]
    # The provider writes the settings with every update of a topic.
    changing = [action for action in actions if action.config and (action.added_partitions or action.changes)]
    deleted = [action.name for action in actions if action.kind is ActionKind.DELETE]
    creations = request_new_topics(admin, new, validate_only=True)
    yield from _denied(creations, "create topic", Operation.CREATE)
    expansions = request_new_partitions(admin, expanding, validate_only=True)
    yield from _denied(expansions, "add partitions to topic", Operation.ALTER)
    settings = request_config_changes(admin, changing, validate_only=True)
    yield from _denied(settings, "change the settings of topic", Operation.ALTER_CONFIGS)
    yield from _deletion_denied(admin, deleted)
    if any(action.is_change for application in plan.applications for action in application.acls):
        yield from _acl_change_denied(admin)


def _denied(results: Mapping[str, "Future[Any]"], what: str, operation: Operation) -> Iterator[Problem]:
    for name, future in results.items():
        error = _error(future)
        if error is not None and is_denial(error):
            yield not_authorized(error, what, name, operation, _WHY)


def _deletion_denied(admin: AdminClient, names: Sequence[str]) -> Iterator[Problem]:
    if not names:
        return
    results = admin.describe_topics(
        TopicCollection(list(names)), include_authorized_operations=True, request_timeout=_SECONDS
    )
    for name, future in results.items():
        if _error(future) is None and AclOperation.DELETE not in (
            future.result().authorized_operations or ()
        ):
            error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            yield not_authorized(error, "delete topic", name, Operation.DELETE, _WHY)


def _acl_change_denied(admin: AdminClient) -> Iterator[Problem]:
    result = admin.describe_cluster(include_authorized_operations=True, request_timeout=_SECONDS)
    if _error(result) is None and AclOperation.ALTER not in (result.result().authorized_operations or ()):
        error = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
        yield not_authorized(error, "change the ACLs of", "the cluster", Operation.ALTER, _WHY)


def _error(future: "Future[Any]") -> KafkaError | None:
    """Wait for the result and return its Kafka error, if any."""
    try:
        future.result(timeout=_SECONDS)
    except KafkaException as error:
        kafka_error: KafkaError = error.args[0]
        return kafka_error
    return None
