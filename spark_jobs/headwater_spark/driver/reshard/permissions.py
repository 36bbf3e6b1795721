"""Find out which permissions the user of a reshard or copy does not have, before anything changes.

Brokers return which operations a user may perform on a topic or a group (KIP-430). They do not do so for
transactional ids: the first transaction, which is opened before anything changes, shows that permission.
"""

from collections.abc import Collection, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # public, but not exported explicitly

from headwater.change import admin_client
from headwater.kafka import Connection
from headwater.kafka.group_admin import GroupAdmin
from headwater.kafka.kafka_errors import is_denial
from headwater.model.acls import Operation, ResourceKind
from headwater.model.problems import Problem
from headwater_spark.driver.reshard import request_failures

_SECONDS = 30.0
_CODES = {
    Operation.READ: AclOperation.READ.value,
    Operation.WRITE: AclOperation.WRITE.value,
    Operation.ALTER: AclOperation.ALTER.value,
}
TopicOperations = Mapping[str, frozenset[int] | None]
"""Topic → the codes of the operations that the user may perform on it; None = the brokers do not say."""


def read_topic_operations(connection: Connection, topics: Collection[str]) -> TopicOperations:
    """Return what the user may do with topics; a topic that it cannot see has no operations.

    Raises `KafkaException`.
    """
    if not topics:
        return {}
    admin = admin_client(connection)  # its requests end when it is deleted
    described = admin.describe_topics(
        TopicCollection(sorted(topics)), include_authorized_operations=True, request_timeout=_SECONDS
    )
    found: dict[str, frozenset[int] | None] = {}
    for name, future in described.items():
        try:
            operations = future.result().authorized_operations
        except KafkaException as error:
            if not is_denial(error.args[0]):
                raise
            found[name] = frozenset()
        else:  # who sees a topic may at least describe it: no operations = unknown
            found[name] = frozenset(each.value for each in operations) if operations else None
    return found


def denied_on_topics(
    application: str,
    known: TopicOperations,
    needs: Mapping[Operation, Collection[str]],
    *,
    has_begun: bool = False,
) -> Sequence[Problem]:
    """Return a problem for each operation that the user may not perform on some of the topics."""
    found = []
    for operation, topics in needs.items():
        denied = [
            topic
            for topic in sorted(topics)
            if (allowed := known.get(topic)) is not None and _CODES[operation] not in allowed
        ]
        if denied:
            found.append(
                request_failures.denied(
                    application, operation, ResourceKind.TOPIC, denied, has_begun=has_begun
                )
            )
    return found


def denied_on_group(connection: Connection, application: str) -> Sequence[Problem]:
    """Return a problem if the user may not read the application's group, or not see it.

    Brokers leave a group that a user may not see out of their lists: the application would look stopped.
    Raises `ProblemsError` if no broker answers.
    """
    answer = GroupAdmin(connection, _SECONDS).groups([application], with_operations=True).get(application)
    if isinstance(answer, KafkaError):
        is_denied = is_denial(answer)
    else:
        is_denied = (
            answer is not None
            and bool(answer.operations)
            and _CODES[Operation.READ] not in (answer.operations or ())
        )
    return (
        [request_failures.denied(application, Operation.READ, ResourceKind.GROUP, [application])]
        if is_denied
        else []
    )
