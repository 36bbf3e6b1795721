"""The Kafka admin client with counted requests, bounded waits and problems for errors."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

import attrs
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclBinding,
    AclOperation,
    AdminClient,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ListOffsetsResultInfo,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from headwater.kafka.acl_bindings import filter_for, operations_of
from headwater.kafka.answering_broker import no_answer, with_certificate_failures
from headwater.kafka.broker_connection import UnreadableAnswerError, enabled_features
from headwater.kafka.broker_session import NoAnswerError
from headwater.kafka.client_settings import client_log
from headwater.kafka.connection import Connection
from headwater.kafka.connection_settings import setting_problem
from headwater.kafka.group_client import GroupClient
from headwater.kafka.kafka_errors import (
    ALL_BROKERS_DOWN,
    NO_ANSWER,
    Answering,
    ClientMessage,
    client_message,
    throttled_message,
    unanswered_request,
    unexpected_error,
    unusable_answer,
)
from headwater.kafka.pending_requests import IN_FLIGHT, PendingRequests, in_background
from headwater.kafka.topic_settings import TopicConfigs
from headwater.model.acls import Operation
from headwater.model.cluster import RegisteredBrokers
from headwater.model.problems import Problem, ProblemsError

CHUNK = 1_000
"""Topics in one request; larger answers approach the limits of the brokers."""
_POLL_SECONDS = 0.02
# A refused connection may be a broker that is starting: librdkafka retries meanwhile.
_CONNECT_SECONDS = 3.0
# librdkafka ends a request at its timeout; this applies when it does not.
_GRACE_SECONDS = 1.0
_PAUSE_SECONDS = 0.1
_OFFSETS = "__consumer_offsets"
"""The topic of the coordinators: each partition belongs to one, and has no coordinator without a leader."""
_METADATA = "describe the cluster"
_READ_SETTINGS = "read the settings of topics"
_NOTHING_YET = KafkaError._PARTIAL  # noqa: SLF001 - the library's own codes begin with an underscore

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


@attrs.frozen
class FirstRequest:
    """The request that every read begins with: the id of the cluster, brokers and topics."""

    metadata: Future[ClusterMetadata]
    at: float = attrs.field(factory=time.monotonic)


@attrs.frozen
class PendingConfigs:
    """A request for the settings of the topics `names`; an error is the answer about all of them."""

    names: Sequence[str]
    answer: Future[TopicConfigs | KafkaError]


Send = Callable[[Sequence[K]], dict[K, Future[V]]]


class Admin:
    """One admin client. `requests` counts the requests; a batch of any number of topics is one request.

    Answers are by name; for a part of a batch that failed, the answer is its `KafkaError`. Every method
    raises `ProblemsError` when the cluster does not answer in time, and within seconds when it cannot be
    reached or rejects the credentials.
    """

    def __init__(self, connection: Connection, timeout_seconds: float) -> None:
        self._connection = connection
        self._timeout = timeout_seconds
        self.requests = 0
        self._descriptions: set[Future[TopicDescription]] = set()
        self._group_client = GroupClient(connection, timeout_seconds)
        self._answering: Answering | None = None
        self.has_all_coordinators = True
        """Whether every group that exists could be listed when the metadata was read."""
        self._connect()

    def _connect(self) -> None:
        messages: deque[ClientMessage] = deque(maxlen=50)
        self._messages = messages  # with `self` in the callback the client could never be freed
        self._is_lost = False
        settings: dict[str, Any] = {
            **self._connection.librdkafka_settings(),
            "client.id": "headwater",
            "error_cb": lambda error: messages.append(client_message(error)),
            "throttle_cb": lambda event: messages.append(throttled_message(event)),
            "socket.connection.setup.timeout.ms": int(min(self._timeout, 10) * 1000),
            "reconnect.backoff.max.ms": 500,
        }
        try:
            self._client = AdminClient(
                settings, logger=client_log(lambda line: messages.append(ClientMessage(line)))
            )
        except KafkaException as error:
            raise ProblemsError([_unusable_client(error.args[0])]) from None

    def open(self) -> FirstRequest:
        """Begin to connect and send the first request.

        After a request without an answer this is done with a new client: librdkafka (2.16) forgets the
        bootstrap servers when metadata has no brokers, and then does not connect again for minutes.
        """
        self._answering = None
        if self._is_lost:
            self.settle()
            self._connect()
        self.requests += 1
        return FirstRequest(in_background(partial(self._read_metadata, self._client)))

    def metadata(self, first: FirstRequest) -> ClusterMetadata:
        """Return the id of the cluster, brokers, and partitions and replicas of all topics.

        Topics that the user may not describe are missing. `AdminClient.describe_cluster` cannot be used:
        librdkafka (2.16) aborts the process on an answer without brokers, which a single broker gives for a
        moment after it was paused.
        """
        try:
            metadata = self._await_answer(first.metadata, _METADATA)
        except KafkaException:
            self._client.poll(0)
            raise ProblemsError([self._unreachable_problem(_METADATA)]) from None
        self._messages.clear()
        offsets = metadata.topics.get(_OFFSETS)
        self.has_all_coordinators = offsets is None or all(
            partition.leader >= 0 for partition in offsets.partitions.values()
        )
        addresses = {id_: f"{broker.host}:{broker.port}" for id_, broker in metadata.brokers.items()}
        self._answering = Answering(
            _broker_address(str(metadata.orig_broker_name)), tuple(sorted(addresses.values()))
        )
        return metadata

    def _read_metadata(self, client: AdminClient) -> ClusterMetadata:
        """Return the metadata; waits while the answers have neither brokers nor topics."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return client.list_topics(timeout=self._timeout)
            except KafkaException as error:
                if error.args[0].code() != _NOTHING_YET or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def settle(self) -> None:
        """Wait until descriptions of topics that no caller waits for are answered, or have timed out.

        Call it before the client is dropped: librdkafka (2.16) aborts the process if such an answer comes
        while the client is being closed.
        """
        wait(tuple(self._descriptions), self._timeout + _GRACE_SECONDS)

    def request_topics(self, names: Sequence[str]) -> PendingRequests[str, TopicDescription]:
        """Request names, ids and replicas of topics."""

        def send(chunk: Sequence[str]) -> dict[str, Future[TopicDescription]]:
            futures = self._client.describe_topics(
                TopicCollection(list(chunk)), request_timeout=self._timeout
            )
            for future in futures.values():
                self._descriptions.add(future)
                future.add_done_callback(self._descriptions.discard)
            return futures

        return self._request("describe topics", names, send)

    def request_topic_configs(self, names: Sequence[str]) -> PendingConfigs:
        """Request all settings of topics.

        librdkafka's client creates a Python object for each setting and each synonym of each topic, which
        takes a large part of the CPU time of a snapshot (ADR 37).
        """
        chunks = [names[start : start + CHUNK] for start in range(0, len(names), CHUNK)]
        self.requests += len(chunks)
        return PendingConfigs(names, in_background(partial(self._topic_configs, chunks)))

    def topic_configs(self, pending: PendingConfigs) -> TopicConfigs:
        """Return the answer; call it in the thread that uses this client.

        Brokers that are not Apache Kafka may know older versions of the request only, as librdkafka does.
        """
        answer = pending.answer.result()
        if not isinstance(answer, KafkaError):
            return answer

        def send(names: Sequence[str]) -> dict[str, Future[Mapping[str, ConfigEntry]]]:
            return self._describe_configs(ResourceType.TOPIC, names)

        answers = self.answers(self._request(_READ_SETTINGS, pending.names, send))
        return dict(answers)

    def _topic_configs(self, chunks: Sequence[Sequence[str]]) -> TopicConfigs | KafkaError:
        # A bootstrap server may be stopped while the others answer.
        known = self._answering
        at = () if known is None else tuple(dict.fromkeys((known.broker, *known.brokers)))
        try:
            return self._at_brokers(_READ_SETTINGS, lambda client: client.topic_configs(chunks, at))
        except UnreadableAnswerError as error:
            raise ProblemsError([unusable_answer(_READ_SETTINGS, str(error))]) from None

    def _describe_configs(
        self, kind: ResourceType, names: Sequence[str]
    ) -> dict[str, Future[Mapping[str, ConfigEntry]]]:
        resources = [ConfigResource(kind, name) for name in names]
        futures = self._client.describe_configs(resources, request_timeout=self._timeout)
        return {resource.name: future for resource, future in futures.items()}

    def request_broker_config(self, id_: int) -> PendingRequests[str, Mapping[str, ConfigEntry]]:
        def send(names: Sequence[str]) -> dict[str, Future[Mapping[str, ConfigEntry]]]:
            return self._describe_configs(ResourceType.BROKER, names)

        return self._request("read the settings of a broker", [str(id_)], send)

    def request_features(self) -> "Future[Mapping[str, int] | None]":
        """Request the enabled features, from a bootstrap server on a connection of its own."""
        self.requests += 1
        return in_background(lambda: enabled_features(self._connection, self._timeout))

    def request_acls(self, principals: Collection[str]) -> "Future[list[AclBinding]]":
        """Request the ACLs of one principal, or of all: a filter cannot name several."""
        self.requests += 1
        only = next(iter(principals)) if len(principals) == 1 else None
        return self._client.describe_acls(filter_for(only), request_timeout=self._timeout)

    def acls(self, pending: "Future[list[AclBinding]]") -> list[AclBinding]:
        answer = self._read_answer(pending, "list the ACLs")
        if isinstance(answer, KafkaError):
            raise ProblemsError([unexpected_error(answer, "list the ACLs of", "the cluster")])
        return answer

    def request_cluster_operations(self) -> "Future[frozenset[Operation]]":
        """Request the user's operations on the cluster; awaiting it raises `ProblemsError`."""
        self.requests += 1
        return in_background(self._cluster_operations)

    def _cluster_operations(self) -> frozenset[Operation]:
        cluster = self._at_brokers(_METADATA, lambda client: client.read_cluster())
        if isinstance(cluster, KafkaError):
            raise ProblemsError([unexpected_error(cluster, "describe", "the cluster")])
        return operations_of(map(AclOperation, cluster.operations or ()))

    def request_first_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> PendingRequests[TopicPartition, ListOffsetsResultInfo]:
        """Request the first offsets (of the oldest records) when no other offsets are requested."""
        return self._request_offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def request_end_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> PendingRequests[TopicPartition, ListOffsetsResultInfo]:
        """Request the end offsets (of the next records) when no other offsets are requested."""
        return self._request_offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def answers(self, pending: PendingRequests[K, V]) -> Iterator[tuple[K, V | KafkaError]]:
        """Yield the answers in the order of the requests."""
        for key, future in pending.take_answers():
            answer: V | KafkaError = self._read_answer(future, pending.what)
            yield key, answer
        self._messages.clear()  # errors of this request must not explain a later one

    def registered_brokers(self) -> RegisteredBrokers | None:
        """Return the brokers of the cluster, None without an answer: they only explain other facts.

        The broker that has answered before is asked: others may be stopped.
        """
        if (answering := self._answering) is None:
            return None
        self.requests += 1
        try:
            found = self._group_client.registered_brokers(answering.broker)
        except NoAnswerError:
            return None
        return None if isinstance(found, KafkaError) else found

    def _at_brokers(self, what: str, ask: Callable[[GroupClient], T]) -> T:
        """Return the answer to the request `what`; raises `ProblemsError` if none came in time."""
        try:
            return ask(self._group_client)
        except NoAnswerError as error:
            raise ProblemsError([self._no_answer(what, error.messages)]) from None

    def _request_offsets(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec
    ) -> PendingRequests[TopicPartition, ListOffsetsResultInfo]:
        """Request offsets. No other request for offsets may be pending.

        librdkafka (2.16) looks for the leaders in the calling thread. If the metadata that an earlier request
        waits for arrives meanwhile, its own thread does the same and releases the request: the process
        crashes.
        """

        def send(chunk: Sequence[TopicPartition]) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
            return self._client.list_offsets(dict.fromkeys(chunk, spec), request_timeout=self._timeout)

        return self._request("read the offsets of topics", partitions, send, in_flight=1)

    def _request(
        self, what: str, items: Sequence[K], send: Send[K, V], in_flight: int = IN_FLIGHT
    ) -> PendingRequests[K, V]:
        def counted(chunk: Sequence[K]) -> dict[K, Future[V]]:
            self.requests += 1
            return send(chunk)

        starts = range(0, len(items), CHUNK)
        return PendingRequests(
            (partial(counted, items[start : start + CHUNK]) for start in starts), in_flight, what
        )

    def _read_answer(self, future: Future[V], what: str) -> V | KafkaError:
        try:
            return self._await_answer(future, what)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
        if reason.code() in NO_ANSWER:
            raise ProblemsError([self._unreachable_problem(what)])
        return reason

    def _await_answer(self, future: Future[V], what: str) -> V:
        """Wait for the answer to the request `what`, and poll the client: it reports errors in callbacks."""
        start = time.monotonic()
        while True:
            try:
                return future.result(_POLL_SECONDS)
            except TimeoutError:
                self._client.poll(0)
                self._check_reachable(time.monotonic() - start, what)

    def _check_reachable(self, waited: float, what: str) -> None:
        """Raise `ProblemsError` when no answer can be expected any more."""
        messages = tuple(self._messages)
        is_refused = any(item.is_final for item in messages)
        is_down = any(item.code == ALL_BROKERS_DOWN for item in messages)
        is_late = waited > self._timeout + _GRACE_SECONDS
        if is_refused or is_late or (is_down and waited > _CONNECT_SECONDS):
            raise ProblemsError([self._unreachable_problem(what)])

    def _unreachable_problem(self, what: str) -> Problem:
        """Report the messages of the client library, which say more than the timeout."""
        self._is_lost = True
        return self._no_answer(what, tuple(self._messages))

    def _no_answer(self, what: str, messages: Sequence[ClientMessage]) -> Problem:
        """Return the problem for a request without an answer.

        A cluster of which a broker answers can be reached: then `what` was not answered.
        """
        if (answering := self._answering) is not None:
            addresses = (answering.broker, *answering.brokers)
            known = with_certificate_failures(self._connection, addresses, messages, self._timeout)
            return unanswered_request(what, answering, known, self._timeout)
        return no_answer(self._connection, what, messages, self._timeout)


def _broker_address(name: str) -> str:
    """Return host and port of a broker by its name in librdkafka, such as `sasl_ssl://host:9093/bootstrap`."""
    return name.rpartition("://")[2].partition("/")[0]


def _unusable_client(error: KafkaError) -> Problem:
    return setting_problem(
        "The Kafka client rejects the settings of the connection.",
        expected="certificates and keys that belong together",
        found=error.str(),
        fix="Correct the setting that is named. An encrypted key needs its password.",
    )
