"""Requests of a reshard or a copy that brokers refuse or do not answer: the problem, and what to do."""

import attrs
from confluent_kafka import KafkaError, KafkaException

from headwater.kafka.kafka_errors import is_denial
from headwater.model.problems import Problem, ProblemCode
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
