"""The Kafka admin client with counted requests, bounded waits and problems for errors."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar
from warnings import catch_warnings, simplefilter

import attrs
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # names that are public there all the same
    AclBinding,
    AdminClient,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ConsumerGroupDescription,
    DescribeClusterResult,
    ListOffsetsResultInfo,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from infra.model.acls import Operation
from infra.model.problems import Problem, ProblemsError
from infra.observe.acl_bindings import filter_for, operations_of
from infra.observe.client_log import client_log
from infra.observe.connection import Connection
from infra.observe.connection_checks import setting_problem
from infra.observe.kafka_errors import (
    ALL_BROKERS_DOWN,
    NO_ANSWER,
    ClientMessage,
    client_message,
    unexpected,
    unreachable,
)
from infra.observe.pending_requests import Asked, in_background

CHUNK = 1_000
"""Topics in one request; larger answers come close to the brokers' limits."""
_POLL_SECONDS = 0.02
# A refused connection may be a broker that is just starting: librdkafka tries again meanwhile.
_PATIENCE_SECONDS = 3.0
# librdkafka ends a request by its time-out itself; this is for when it does not.
_GRACE_SECONDS = 1.0
_FIRST_TRY_SECONDS = 1.0
_TIMES_AS_LONG = 5
_PAUSE_SECONDS = 0.1
_COORDINATOR_COMES = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)

K = TypeVar("K")
V = TypeVar("V")
Groups = Mapping[str, ConsumerGroupDescription | KafkaError]


@attrs.frozen
class Opening:
    """What is asked first, whatever is asked later: the cluster's id; brokers and topics."""

    cluster: Future[DescribeClusterResult]
    metadata: Future[ClusterMetadata]
    at: float = attrs.field(factory=time.monotonic)


Ask = Callable[[Sequence[K]], dict[K, Future[V]]]


class Admin:
    """One admin client. `requests` counts the calls made, each a batch whatever the number of topics in it.

    Answers are by name; a part of a batch that fails is its `KafkaError`. Every method raises `ProblemsError`
    when the cluster does not answer in time, and within seconds when it cannot be reached or does not let us
    in.
    """

    def __init__(self, connection: Connection, timeout_seconds: float) -> None:
        self._servers = connection.bootstrap_servers
        self._timeout = timeout_seconds
        heard: deque[ClientMessage] = deque(maxlen=50)
        self._heard = heard  # not by `self` in the callback: the client could never be freed
        self.requests = 0
        self._patience = _FIRST_TRY_SECONDS
        settings: dict[str, Any] = {
            **connection.confluent(),
            "client.id": "headwater",
            "error_cb": lambda error: heard.append(client_message(error)),
            "socket.connection.setup.timeout.ms": int(min(timeout_seconds, 10) * 1000),
            "reconnect.backoff.max.ms": 500,
        }
        try:
            self._client = AdminClient(
                settings, logger=client_log(lambda line: heard.append(ClientMessage(line)))
            )
        except KafkaException as error:
            raise ProblemsError([_unusable(error.args[0])]) from None

    def open(self) -> Opening:
        """Begin to connect and send the first questions."""
        return Opening(self._ask_cluster(), self._ask_metadata())

    def connect(self, opening: Opening | None = None) -> str:
        """Return the cluster's id."""
        answer = self._answer(opening.cluster if opening else self._ask_cluster())
        self._heard.clear()
        if isinstance(answer, KafkaError):
            raise ProblemsError([unexpected(answer, "describe", "the cluster")])
        return str(answer.cluster_id)

    def metadata(self, opening: Opening) -> ClusterMetadata:
        """Return brokers, and names, partitions and replicas of all topics that the user may see."""
        try:
            metadata = self._awaited(opening.metadata)
        except KafkaException:
            self._client.poll(0)
            raise ProblemsError([self._unreachable()]) from None
        taken = time.monotonic() - opening.at
        self._patience = min(self._timeout, max(_FIRST_TRY_SECONDS, _TIMES_AS_LONG * taken))
        return metadata

    def ask_topics(self, names: Sequence[str]) -> Asked[str, TopicDescription]:
        """Send the question for names, ids and replicas of topics."""
        return self._ask(
            names,
            lambda chunk: self._client.describe_topics(
                TopicCollection(list(chunk)), request_timeout=self._timeout
            ),
        )

    def ask_configs(self, kind: ResourceType, names: Sequence[str]) -> Asked[str, Mapping[str, ConfigEntry]]:
        """Send the question for the settings of topics, or of one broker."""

        def send(chunk: Sequence[str]) -> dict[str, Future[Mapping[str, ConfigEntry]]]:
            resources = [ConfigResource(kind, name) for name in chunk]
            futures = self._client.describe_configs(resources, request_timeout=self._timeout)
            return {resource.name: future for resource, future in futures.items()}

        return self._ask(names, send)

    def ask_acls(self, principals: Collection[str]) -> "Future[list[AclBinding]]":
        """Send the question for the ACLs of one principal, or of all: a filter names no several."""
        self.requests += 1
        only = next(iter(principals)) if len(principals) == 1 else None
        return self._client.describe_acls(filter_for(only), request_timeout=self._timeout)

    def acls(self, asked: "Future[list[AclBinding]]") -> list[AclBinding]:
        answer = self._answer(asked)
        if isinstance(answer, KafkaError):
            raise ProblemsError([unexpected(answer, "list the ACLs of", "the cluster")])
        return answer

    def ask_cluster_rights(self) -> "Future[DescribeClusterResult]":
        """Send the question for what the user may do to the cluster as a whole."""
        self.requests += 1
        return self._client.describe_cluster(
            include_authorized_operations=True, request_timeout=self._timeout
        )

    def cluster_rights(self, asked: "Future[DescribeClusterResult]") -> frozenset[Operation]:
        answer = self._answer(asked)
        if isinstance(answer, KafkaError):
            raise ProblemsError([unexpected(answer, "describe", "the cluster")])
        return operations_of(answer.authorized_operations or ())

    def ask_end_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> Asked[TopicPartition, ListOffsetsResultInfo]:
        """Send the question for the offsets that the next records will get."""

        def send(chunk: Sequence[TopicPartition]) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
            latest = {partition: OffsetSpec.latest() for partition in chunk}  # type: ignore[no-untyped-call]
            return self._client.list_offsets(latest, request_timeout=self._timeout)

        return self._ask(partitions, send)

    def answers(self, asked: Asked[K, V]) -> Iterator[tuple[K, V | KafkaError]]:
        """Yield the answers as they come."""
        for key, future in asked.take():
            answer: V | KafkaError = self._answer(future)
            yield key, answer
        self._heard.clear()  # what was wrong for a moment must not count against a later request

    def groups(self, ids: Sequence[str]) -> Groups:
        """Return consumer groups; waits for a coordinator that is about to come up.

        Nothing else may be under way: a coordinator's answer that comes after the time-out, as one behind
        large requests does, makes librdkafka abort the process or hang when the client is closed.

        A new cluster makes the coordinators' topic when first asked. librdkafka then asks thrice and sleeps
        until the time-out, so it is given little time at first, as measured by the cluster's other answers.
        """
        deadline, patience = time.monotonic() + self._timeout, self._patience
        while True:
            self.requests += 1
            asked = self._client.describe_consumer_groups(list(ids), request_timeout=patience)
            answers = {id_: self._outcome(future) for id_, future in asked.items()}
            if not any(_is_passing(answer) for answer in answers.values()):
                return answers
            if time.monotonic() > deadline:
                raise ProblemsError([self._unreachable()])
            self._client.poll(_PAUSE_SECONDS)
            patience = min(2 * patience, self._timeout)

    def has_group(self, id_: str) -> bool:
        """Return whether a group of any type exists; a description of one of the streams type says `Dead`."""
        self.requests += 1
        with catch_warnings():
            simplefilter("ignore", DeprecationWarning)  # its successor lists groups of consumers only
            try:
                return bool(self._client.list_groups(id_, timeout=self._timeout))
            except KafkaException:
                raise ProblemsError([self._unreachable()]) from None

    def _ask_cluster(self) -> Future[DescribeClusterResult]:
        self.requests += 1
        return self._client.describe_cluster(request_timeout=self._timeout)

    def _ask_metadata(self) -> Future[ClusterMetadata]:
        self.requests += 1
        return in_background(partial(self._client.list_topics, timeout=self._timeout))

    def _ask(self, items: Sequence[K], ask: Ask[K, V]) -> Asked[K, V]:
        def send(chunk: Sequence[K]) -> dict[K, Future[V]]:
            self.requests += 1
            return ask(chunk)

        starts = range(0, len(items), CHUNK)
        return Asked(partial(send, items[start : start + CHUNK]) for start in starts)

    def _answer(self, future: Future[V]) -> V | KafkaError:
        answer: V | KafkaError = self._outcome(future)
        if isinstance(answer, KafkaError) and answer.code() in NO_ANSWER:
            raise ProblemsError([self._unreachable()])
        return answer

    def _outcome(self, future: Future[V]) -> V | KafkaError:
        try:
            return self._awaited(future)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            return reason

    def _awaited(self, future: Future[V]) -> V:
        """Wait; meanwhile the client tells, when polled, what goes wrong."""
        start = time.monotonic()
        while True:
            try:
                return future.result(_POLL_SECONDS)
            except TimeoutError:
                self._client.poll(0)
                self._check_hope(time.monotonic() - start)

    def _check_hope(self, waited: float) -> None:
        """Raise when no answer is to be expected any more."""
        heard = tuple(self._heard)
        is_refused = any(item.is_final for item in heard)
        is_down = any(item.code == ALL_BROKERS_DOWN for item in heard)
        is_late = waited > self._timeout + _GRACE_SECONDS
        if is_refused or is_late or (is_down and waited > _PATIENCE_SECONDS):
            raise ProblemsError([self._unreachable()])

    def _unreachable(self) -> Problem:
        """Report the messages of the client library, which say more than the time-out."""
        return unreachable(self._servers, tuple(self._heard), self._timeout)


def _is_passing(answer: object) -> bool:
    return isinstance(answer, KafkaError) and answer.code() in (*_COORDINATOR_COMES, *NO_ANSWER)


def _unusable(error: KafkaError) -> Problem:
    return setting_problem(
        "The Kafka client cannot work with the connection's settings.",
        expected="certificates and keys that belong together",
        found=error.str(),
        fix="Correct the setting that is named. A key that is encrypted needs its password.",
    )
