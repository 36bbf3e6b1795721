"""Check whether the brokers accept all changes of a plan, before the first change.

The brokers validate and authorize requests with `validate_only` like real ones. There is no such request for
deletions and ACLs; for these the brokers return the user's authorized operations.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclOperation,
    AdminClient,
)

from headwater.change import admin_client, request_config_changes, request_new_partitions, request_new_topics
from headwater.kafka import Connection
from headwater.kafka.admin import Admin
from headwater.kafka.kafka_errors import TIMED_OUT, is_denial, not_authorized
from headwater.model.acls import Operation
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.planner import ActionKind, Plan

if TYPE_CHECKING:
    from concurrent.futures import Future

_SECONDS = 60
_INVALID = frozenset(
    {
        KafkaError.INVALID_CONFIG,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_REQUEST,
        KafkaError.TOPIC_EXCEPTION,
    }
)
_WHY = "A run without all permissions would stop halfway. Nothing has been changed."


def refusals(connection: Connection, plan: Plan, *, with_permissions: bool = True) -> Iterator[Problem]:
    """Yield a problem for each change of a topic that the brokers refuse, and one for the ACLs.

    Missing permissions are refusals only `with_permissions`: who reviews a change may have no permission to
    make it. Other errors, such as a timeout, are ignored here; the run itself reports them.
    """
    admin = admin_client(connection)
    actions = tuple(plan.actions)
    new = [action for action in actions if action.kind in (ActionKind.CREATE, ActionKind.RECREATE)]
    expanding = [action for action in actions if action.added_partitions]
    # The provider writes the settings with every update of a topic.
    changing = [action for action in actions if action.config and (action.added_partitions or action.changes)]
    requests = (
        (request_new_topics(admin, new, validate_only=True), _CREATE),
        (request_new_partitions(admin, expanding, validate_only=True), _EXPAND),
        (request_config_changes(admin, changing, validate_only=True), _CONFIGURE),
    )
    for results, change in requests:
        yield from _refused_changes(results, change, with_permissions=with_permissions)
    if with_permissions:
        yield from _deletion_denied(
            admin, [action.name for action in actions if action.kind is ActionKind.DELETE]
        )
        if any(action.is_change for application in plan.applications for action in application.acls):
            yield from _acl_change_denied(connection)


@attrs.frozen
class _Change:
    """A change of a topic: what the user does, the operation that needs a permission, and refusals."""

    what: str
    operation: Operation
    refusals: frozenset[int] = _INVALID


_CREATE = _Change("create topic", Operation.CREATE)
# Invalid partitions: another client has expanded the topic since the plan was made. The run checks it again.
_EXPAND = _Change(
    "add partitions to topic", Operation.ALTER, refusals=_INVALID - {KafkaError.INVALID_PARTITIONS}
)
_CONFIGURE = _Change("change the settings of topic", Operation.ALTER_CONFIGS)


def _refused_changes(
    results: Mapping[str, "Future[Any]"], change: _Change, *, with_permissions: bool
) -> Iterator[Problem]:
    for name, future in results.items():
        error = _error_of(future)
        if error is None:
            continue
        if not is_denial(error):
            if error.code() in change.refusals:
                yield _refused_change(error, change, name)
        elif with_permissions:
            yield not_authorized(error, change.what, name, change.operation, why=_WHY)


def _refused_change(error: KafkaError, change: _Change, name: str) -> Problem:
    return Problem(
        code=ProblemCode.REFUSED_BY_BROKERS,
        summary=f"The brokers refuse to {change.what} {name} as planned.",
        topic=name,
        expected="a topic that the brokers accept",
        found=f"{error.name()}: {error.str()}",
        why="`pulumi up` would fail halfway. Nothing has been changed.",
        fix="Correct what the brokers name, in the document or in their own policy for topics. If it is a "
        "setting of internal topics that Kafka Streams sends, declare it as absent (`topic.NAME: null`), or "
        "declare the kind of cluster (`application.clusterProfile`).",
    )


def _deletion_denied(admin: AdminClient, names: Sequence[str]) -> Iterator[Problem]:
    if not names:
        return
    results = admin.describe_topics(
        TopicCollection(list(names)), include_authorized_operations=True, request_timeout=_SECONDS
    )
    for name, future in results.items():
        if _error_of(future) is None and AclOperation.DELETE not in (
            future.result().authorized_operations or ()
        ):
            error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            yield not_authorized(error, "delete topic", name, Operation.DELETE, why=_WHY, purpose="retire")


def _acl_change_denied(connection: Connection) -> Iterator[Problem]:
    try:
        allowed = Admin(connection, _SECONDS).request_cluster_operations().result()
    except ProblemsError:
        return
    if Operation.ALTER not in allowed:
        error = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
        yield not_authorized(error, "change the ACLs of", "the cluster", Operation.ALTER, why=_WHY)


def _error_of(future: "Future[Any]") -> KafkaError | None:
    """Wait for the result and return its Kafka error, if any; a timeout is one."""
    try:
        future.result(timeout=_SECONDS)
    except KafkaException as error:
        kafka_error: KafkaError = error.args[0]
        return kafka_error
    except TimeoutError:  # librdkafka ends the request at the same moment
        return TIMED_OUT
    return None
