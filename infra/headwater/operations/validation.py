"""Check whether the brokers accept all changes of a plan, before the first change.

The brokers validate and authorize requests with `validate_only` like real ones. There is no such request for
deletions and ACLs; for these the brokers return the user's authorized operations.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from confluent_kafka import KafkaError, KafkaException, ThrottleEvent, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclOperation,
    AdminClient,
)

from headwater.change import admin_client, request_config_changes, request_new_partitions, request_new_topics
from headwater.kafka import Connection
from headwater.kafka.admin import Admin
from headwater.kafka.answering_broker import find_answering
from headwater.kafka.kafka_errors import TIMED_OUT, is_denial, not_authorized
from headwater.model.acls import Operation
from headwater.model.cluster_profiles import RELIED_ON
from headwater.model.problems import Problem, ProblemCode, ProblemsError, Severity
from headwater.planner import ActionKind, Plan
from headwater.planner.phrases import few_names

if TYPE_CHECKING:
    from concurrent.futures import Future

_REQUEST_SECONDS = 30
_PROBE_SECONDS = 15
_LONG_DELAY_SECONDS = 5.0
_PROVIDER = "terraform-provider-kafka"
"""The client id of Pulumi's Kafka provider, which a quota may be for."""
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
_WITHOUT_ANSWER = frozenset({TIMED_OUT.code(), KafkaError.REQUEST_TIMED_OUT})
_WHY = "A run without all permissions would stop halfway. Nothing has been changed."


def find_refusals(connection: Connection, plan: Plan, *, with_permissions: bool = True) -> Iterator[Problem]:
    """Yield a problem for each change of a topic that the brokers refuse, and one for the ACLs.

    Missing permissions are refusals only `with_permissions`: who reviews a change may have no permission to
    make it. So is a controller that answers about no topic, unless a quota delays the requests. Other errors
    are ignored here; the run itself reports them.
    """
    delays: list[ThrottleEvent] = []
    admin = admin_client(connection, delays.append)
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
    silent: list[str] = []
    for results, change in requests:
        yield from _refused_changes(results, change, silent, with_permissions=with_permissions)
    if with_permissions:
        admin.poll(0)  # delivers the delays
        is_slow = len(silent) < sum(len(results) for results, _ in requests)
        if silent and not is_slow and not delays:
            yield from _silent_controller(connection, silent, _REQUEST_SECONDS)
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
    results: Mapping[str, "Future[Any]"], change: _Change, silent: list[str], *, with_permissions: bool
) -> Iterator[Problem]:
    """Yield the refusals; names of topics without an answer are added to `silent`."""
    for name, future in results.items():
        error = _error_of(future)
        if error is None:
            continue
        if error.code() in _WITHOUT_ANSWER:
            silent.append(name)
        elif not is_denial(error):
            if error.code() in change.refusals:
                yield _refused_change(error, change, name)
        elif with_permissions:
            yield not_authorized(error, change.what, name, change.operation, why=_WHY)


_CANNOT_BE_ABSENT = (
    f"Kafka Streams relies on {', '.join(sorted(RELIED_ON))}, which cannot be absent: if the brokers refuse "
    "one of them, use another kind of store, or another cluster."
)


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
        f"declare the kind of cluster (`application.clusterProfile`). {_CANNOT_BE_ABSENT}",
    )


def controller_problem(connection: Connection, topic: str) -> Problem | None:
    """Return a warning that brokers answer and their controller does not, or that a quota delays changes.

    None if the controller answers at once, or if no broker answers. The controller is asked to validate the
    creation of `topic`, which changes nothing. Any answer counts: that the topic exists, or that the user may
    not create it, too.
    """
    delays: list[ThrottleEvent] = []
    admin = admin_client(connection, delays.append, client_id=_PROVIDER)
    [future] = request_new_topics(
        admin, [_Probe(topic)], validate_only=True, timeout_seconds=_PROBE_SECONDS
    ).values()
    error = _error_of(future)
    admin.poll(0)  # delivers the delays
    longest = max((event.throttle_time for event in delays), default=0.0)
    if longest >= _LONG_DELAY_SECONDS:
        return _delayed_changes(longest)
    if error is None or error.code() not in _WITHOUT_ANSWER:
        return None
    return next(_silent_controller(connection, [topic], _PROBE_SECONDS, Severity.WARNING), None)


@attrs.frozen
class _Probe:
    """A `TopicTarget` with the defaults of the brokers."""

    name: str
    partitions: int | None = None
    replication_factor: int = -1
    config: Mapping[str, str] = attrs.field(factory=dict)


def _silent_controller(
    connection: Connection, names: Sequence[str], seconds: float, severity: Severity = Severity.ERROR
) -> Iterator[Problem]:
    """Yield the problem if a broker answers; if none does, the run itself reports that."""
    answering, _ = find_answering(connection, seconds)
    if answering is None:
        return
    yield Problem(
        code=ProblemCode.REQUEST_NOT_ANSWERED,
        summary="The controller of the cluster does not answer, and it makes all changes of topics.",
        topic=names[0] if len(names) == 1 else None,
        expected=f"an answer within {seconds:g} s about {few_names(sorted({*names}))}",
        found=f"none; broker {answering.broker} answers",
        why="A run waits for minutes, and fails halfway. Topics that have been changed keep their changes.",
        fix="Check that the controllers run (processes with `controller` in `process.roles`), that the "
        "brokers can connect to them (`controller.quorum.bootstrap.servers` or `controller.quorum.voters`), "
        "and the logs of both. Then run again: a run completes what is left.",
        severity=severity,
    )


def _delayed_changes(seconds: float) -> Problem:
    return Problem(
        code=ProblemCode.REQUEST_NOT_ANSWERED,
        summary="A quota of the brokers delays changes of topics.",
        expected="changes that are made at once",
        found=f"a delay of {seconds:.0f} s after each request",
        why="The run takes longer. If the Kafka provider does not get an answer in time, it fails halfway. "
        "Topics that have been changed keep their changes.",
        fix="Wait. If the run fails, run again: a run completes what is left. Or have the quota raised "
        "(`controller_mutation_rate`): `kafka-configs.sh --bootstrap-server BROKER --describe --entity-type "
        "users` shows the quotas of users, `--entity-type clients` the quotas of client ids. The provider's "
        f"client id is {_PROVIDER}.",
        severity=Severity.WARNING,
    )


def _deletion_denied(admin: AdminClient, names: Sequence[str]) -> Iterator[Problem]:
    if not names:
        return
    results = admin.describe_topics(
        TopicCollection(list(names)), include_authorized_operations=True, request_timeout=_REQUEST_SECONDS
    )
    for name, future in results.items():
        if _error_of(future) is None and AclOperation.DELETE not in (
            future.result().authorized_operations or ()
        ):
            error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            yield not_authorized(error, "delete topic", name, Operation.DELETE, why=_WHY, purpose="retire")


def _acl_change_denied(connection: Connection) -> Iterator[Problem]:
    try:
        allowed = Admin(connection, _REQUEST_SECONDS).request_cluster_operations().result()
    except ProblemsError:
        return
    if Operation.ALTER not in allowed:
        error = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
        yield not_authorized(error, "change the ACLs of", "the cluster", Operation.ALTER, why=_WHY)


def _error_of(future: "Future[Any]") -> KafkaError | None:
    """Wait for the result and return its Kafka error, if any; a timeout is one."""
    try:
        future.result(timeout=_REQUEST_SECONDS)
    except KafkaException as error:
        kafka_error: KafkaError = error.args[0]
        return kafka_error
    except TimeoutError:  # librdkafka ends the request at the same moment
        return TIMED_OUT
    return None
