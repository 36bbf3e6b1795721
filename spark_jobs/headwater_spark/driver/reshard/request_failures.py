"""What brokers refuse to the user of a reshard or a copy: failed requests, and permissions that are missing.

Permissions are checked before anything changes. Brokers return which operations a user may perform on a topic
or a group (KIP-430). They do not do so for transactional ids: the first transaction, which is opened before
anything changes, shows that permission.
"""

from collections.abc import Collection, Mapping, Sequence

import attrs
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # public, but not exported explicitly

from headwater.change import admin_client
from headwater.kafka import Connection
from headwater.kafka.group_admin import GroupAdmin
from headwater.kafka.kafka_errors import is_denial
from headwater.model.acls import RESOURCE_OPTIONS, Operation, ResourceKind
from headwater.model.problems import Problem, ProblemCode, first_names
from headwater_spark.driver.reshard.copy_plan import copy_failed
from headwater_spark.driver.reshard.problems import INCOMPLETE, shares_failed
from headwater_spark.driver.reshard.share_tasks import SharesFailedError

ALL_PERMISSIONS = (
    "`headwater acls DOCUMENT --self --for reshard --principal User:NAME --format commands` prints the "
    "commands for all permissions."
)
UNCHANGED_NOW = (
    "This command has changed nothing. If an earlier command was interrupted, the application must not start "
    "before the reshard or copy is complete."
)
_DELETED = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})  # noqa: SLF001 - the library's own codes


@attrs.frozen
class Remedy:
    """What was expected of the brokers instead of an error, and what to do about it.

    `then` is what the command does when it runs again.
    """

    expected: str
    fix: str
    then: str = "It continues where it was interrupted."


_PERMISSION = Remedy(
    "a user with permissions",
    "Grant the user the permission: " + ALL_PERMISSIONS,
)
_TOPIC = Remedy(
    "topics that exist",
    "A topic was deleted: find out by whom.",
    then="It names the topic, and what is left to do.",
)
_MEMBERS = Remedy(
    "a consumer group without members",
    "An instance of the application has started: stop all instances.",
)
_BROKERS = Remedy(
    "brokers that answer, and partitions with a leader and room on its disk",
    "Check that all brokers run and that their disks are not full, and list the partitions that cannot be "
    "read or written: `kafka-topics.sh --bootstrap-server BROKER --describe --unavailable-partitions`, and "
    "the same with `--under-min-isr-partitions`.",
)


def remedy_of(error: KafkaError) -> Remedy:
    """Return what to do about an error of a request."""
    if is_denial(error):
        return _PERMISSION
    if error.code() == KafkaError.UNKNOWN_MEMBER_ID:
        return _MEMBERS
    return _TOPIC if error.code() in _DELETED else _BROKERS


def kafka_problem(application: str, error: KafkaException, *, has_begun: bool) -> Problem:
    """Return the problem of a reshard that has failed with an error of Kafka."""
    if isinstance(error, SharesFailedError):
        return shares_failed(application, error.args[0].str(), has_begun=has_begun)
    return (request_failed if has_begun else not_checked)(application, error.args[0])


def request_failed(application: str, error: KafkaError) -> Problem:
    """Return the problem of a reshard that has begun, whose request has failed with `error`."""
    remedy, reason = remedy_of(error), error.str()
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"The reshard of {application} is not complete: {reason}.",
        expected=remedy.expected,
        found=reason,
        why=INCOMPLETE,
        fix=f"{remedy.fix} Then run the command again. {remedy.then}",
    )


def not_checked(application: str, error: KafkaError) -> Problem:
    """Return the problem of a request that failed before this command has changed anything."""
    remedy, reason = remedy_of(error), error.str()
    return Problem(
        code=ProblemCode.NOT_AUTHORIZED if is_denial(error) else ProblemCode.REQUEST_NOT_ANSWERED,
        application=application,
        summary=f"The state of {application} was not checked: {reason}.",
        expected=remedy.expected,
        found=reason,
        why="The state is read before anything changes. " + UNCHANGED_NOW,
        fix=f"{remedy.fix} Then run the command again.",
    )


def copy_request_failed(application: str, error: KafkaError) -> Problem:
    """Return the problem of a copy whose request has failed with `error`."""
    remedy = remedy_of(error)
    return copy_failed(application, error.str(), remedy.expected, remedy.fix)


_MOST_NAMES = 20
"""A summary names so many topics at most."""
_REQUEST_SECONDS = 30.0
_OPERATION_CODES = {
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
        TopicCollection(sorted(topics)), include_authorized_operations=True, request_timeout=_REQUEST_SECONDS
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
        refused = [
            topic
            for topic in sorted(topics)
            if (allowed := known.get(topic)) is not None and _OPERATION_CODES[operation] not in allowed
        ]
        if refused:
            found.append(
                _denied_problem(application, operation, ResourceKind.TOPIC, refused, has_begun=has_begun)
            )
    return found


def denied_on_group(connection: Connection, application: str) -> Sequence[Problem]:
    """Return a problem if the user may not read the application's group, or not see it.

    Brokers leave a group that a user may not see out of their lists: the application would look stopped.
    Raises `ProblemsError` if no broker answers.
    """
    answer = (
        GroupAdmin(connection, _REQUEST_SECONDS).groups([application], with_operations=True).get(application)
    )
    if isinstance(answer, KafkaError):
        is_denied = is_denial(answer)
    else:
        is_denied = (
            answer is not None
            and bool(answer.operations)
            and _OPERATION_CODES[Operation.READ] not in (answer.operations or ())
        )
    return (
        [_denied_problem(application, Operation.READ, ResourceKind.GROUP, [application])] if is_denied else []
    )


def _denied_problem(
    application: str,
    operation: Operation,
    kind: ResourceKind,
    names: Sequence[str],
    *,
    has_begun: bool = False,
) -> Problem:
    """Return the problem of a permission that the user does not have, with the command that grants it."""
    shown = first_names(names, _MOST_NAMES)
    noun = kind.lower() if len(names) == 1 else f"{kind.lower()}s"
    options = " ".join(f"{RESOURCE_OPTIONS[kind]} {name}" for name in names)
    return Problem(
        code=ProblemCode.NOT_AUTHORIZED,
        application=application,
        summary=f"The Kafka brokers do not permit this user {operation} on {noun} {shown}.",
        expected=f"permission {operation} on {noun} {shown}",
        found="a user without this permission",
        why=INCOMPLETE
        if has_begun
        else "The reshard or copy would stop halfway, or would not see whether the "
        f"application runs. {UNCHANGED_NOW}",
        fix="Grant the permission: `kafka-acls.sh --bootstrap-server BROKER --add --allow-principal "
        f"User:NAME --operation {operation} {options}`. {ALL_PERMISSIONS}",
    )
