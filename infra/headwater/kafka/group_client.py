"""Requests about groups, brokers and the settings of topics that are sent without librdkafka."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from confluent_kafka import KafkaError

from headwater.kafka import group_messages as messages
from headwater.kafka.broker_connection import BrokerConnection, UnknownRequestError, UnreadableAnswerError
from headwater.kafka.broker_session import BrokerSession
from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.group_messages import describe_cluster
from headwater.kafka.kafka_errors import is_moving
from headwater.kafka.login import Login
from headwater.kafka.streams_group_messages import (
    DESCRIBE_STREAMS_GROUPS,
    describe_streams_groups,
    streams_groups,
)
from headwater.kafka.topic_settings import (
    DESCRIBE_CONFIGS,
    TopicConfig,
    TopicConfigs,
    describe_topic_configs,
    topic_configs,
)
from headwater.model.cluster import RegisteredBrokers
from headwater.model.streams_groups import StreamsGroup

Groups = Mapping[str, messages.GroupDescription | KafkaError]


class GroupClient:
    """Describes, lists and reads groups, and reads the settings of topics.

    A coordinator that starts, moves or does not answer is asked again for `timeout_seconds`; then the methods
    raise `NoAnswerError`. They may be called in several threads.
    """

    def __init__(self, settings: ConnectionSettings, timeout_seconds: float) -> None:
        self._settings = settings
        self._timeout = timeout_seconds
        self._login = Login(settings)

    def describe(
        self, ids: Sequence[str], *, with_operations: bool = False, tolerates_unavailable: bool = False
    ) -> Groups:
        """Return groups, optionally with the operations that the user may perform on them.

        Classic groups and groups of the consumer protocol are described; the state of all others is `Dead`.
        With `tolerates_unavailable`, groups without a coordinator have the error COORDINATOR_NOT_AVAILABLE.
        """
        with self._session() as session:

            def ask(
                connected: BrokerConnection, asked: Sequence[str]
            ) -> Sequence[tuple[str, messages.GroupDescription | KafkaError]]:
                body = messages.describe_groups(asked, with_operations=with_operations)
                answers = dict(
                    session.request(connected, messages.DESCRIBE_GROUPS, body, messages.classic_groups)
                )
                unknown = [id_ for id_, answer in answers.items() if _is_dead(answer)]
                body = messages.describe_groups(unknown, with_operations=with_operations)
                found = _described_consumers(session, connected, body) if unknown else {}
                return tuple({**answers, **found}.items())

            return session.at_coordinators(ids, ask, tolerates_unavailable=tolerates_unavailable)

    def streams_groups(
        self, ids: Sequence[str], *, with_nodes: bool
    ) -> Mapping[str, StreamsGroup | KafkaError]:
        """Return groups of the streams protocol, optionally with the nodes that clients have sent (KIP-1331).

        A group that does not exist, or has another protocol, has the error GROUP_ID_NOT_FOUND. All have the
        error UNSUPPORTED_VERSION if the brokers do not know the request. A group whose description is too
        large has the error MSG_SIZE_TOO_LARGE.
        """
        with self._session() as session:

            def ask(
                connected: BrokerConnection, asked: Sequence[str]
            ) -> Sequence[tuple[str, StreamsGroup | KafkaError]]:
                try:
                    return described_streams_groups(session, connected, asked, with_nodes=with_nodes)
                except UnknownRequestError:
                    return [(id_, KafkaError(KafkaError.UNSUPPORTED_VERSION)) for id_ in asked]

            return session.at_coordinators(ids, ask)

    def committed_topics(self, ids: Sequence[str]) -> Mapping[str, frozenset[str] | KafkaError]:
        """Return group → topics with committed offsets, by one request to each coordinator."""
        with self._session() as session:

            def ask(
                connected: BrokerConnection, asked: Sequence[str]
            ) -> Sequence[tuple[str, frozenset[str] | KafkaError]]:
                return session.request(
                    connected,
                    messages.FETCH_OFFSETS,
                    messages.fetch_offsets(asked),
                    messages.committed_topics,
                )

            return session.at_coordinators(ids, ask)

    def commit(self, id_: str, commits: Mapping[tuple[str, int], tuple[int, str]]) -> KafkaError | None:
        """Commit partition → (offset, text) for a group without members; return the first error, if any.

        librdkafka's clients in Python append a null byte to each text: Java's Base64 decoder, and with it
        Kafka Streams, refuses the text.
        """
        body = messages.commit_offsets(id_, commits)
        with self._session() as session:

            def ask(
                connected: BrokerConnection, asked: Sequence[str]
            ) -> Sequence[tuple[str, KafkaError | bool]]:
                refused = [
                    KafkaError(error.code(), f"{topic}, partition {partition}: {error.str()}")
                    for topic, partition, error in session.request(
                        connected, messages.COMMIT_OFFSETS, body, messages.refused_commits
                    )
                ]
                first = next((each for each in refused if is_moving(each)), next(iter(refused), True))
                return [(each, first) for each in asked]

            answer = session.at_coordinators([id_], ask)[id_]
        return answer if isinstance(answer, KafkaError) else None

    def list_groups(self) -> Sequence[messages.GroupListing] | KafkaError:
        """Return all groups that the user may describe, of every broker that is alive."""
        with self._session() as session:
            return session.retry(lambda: _list_groups(session))

    def read_cluster(self) -> messages.ClusterDescription | KafkaError:
        """Return the brokers that are alive, and the operations that the user may perform on the cluster."""
        with self._session() as session:
            return session.retry(lambda: _describe_cluster(session, with_operations=True))

    def registered_brokers(self, at: str) -> RegisteredBrokers | KafkaError:
        """Return the brokers of the cluster, as the broker `at` an address knows them.

        From Kafka 4.0 on, stopped brokers are among them.
        """
        with self._session() as session:
            return session.retry(lambda: _registered_brokers(session, at))

    def topic_configs(self, chunks: Iterable[Sequence[str]], at: Sequence[str]) -> TopicConfigs | KafkaError:
        """Return the settings of topics, each chunk by one request; the answer about a topic may be an error.

        The first broker `at` these addresses that answers is asked; none: the bootstrap servers. The error is
        UNSUPPORTED_VERSION if the broker knows older versions of the request only.

        Raises:
            NoAnswerError: No broker has answered one of the requests in time.
            UnreadableAnswerError: An answer cannot be read, or is about other topics.
        """
        found: dict[str, TopicConfig | KafkaError] = {}
        with self._session() as session:
            for names in chunks:
                answer = _request_topic_configs(session, names, at)
                if isinstance(answer, KafkaError):
                    return answer
                found |= answer
        return found

    def _session(self) -> BrokerSession:
        return BrokerSession(self._settings, self._login, self._timeout)


def _request_topic_configs(
    session: BrokerSession, names: Sequence[str], at: Sequence[str]
) -> TopicConfigs | KafkaError:
    body, read = describe_topic_configs(names), partial(topic_configs, names)

    def ask() -> TopicConfigs | UnreadableAnswerError | KafkaError:
        try:
            return session.request(session.any_broker(at), DESCRIBE_CONFIGS, body, read)
        except UnknownRequestError:
            return KafkaError(KafkaError.UNSUPPORTED_VERSION)
        except UnreadableAnswerError as error:
            return error  # the next answer would be the same

    answer: TopicConfigs | UnreadableAnswerError | KafkaError = session.retry(ask)
    if isinstance(answer, UnreadableAnswerError):
        raise answer
    return answer


def _described_consumers(session: BrokerSession, connected: BrokerConnection, body: bytes) -> Groups:
    """Return those groups that have the consumer protocol."""
    try:
        answers = session.request(
            connected, messages.DESCRIBE_CONSUMER_GROUPS, body, messages.consumer_groups
        )
    except UnknownRequestError:
        return {}
    is_other = (KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNSUPPORTED_VERSION)
    return {
        id_: answer
        for id_, answer in answers
        if not isinstance(answer, KafkaError) or answer.code() not in is_other
    }


def described_streams_groups(
    session: BrokerSession, connected: BrokerConnection, ids: Sequence[str], *, with_nodes: bool
) -> Sequence[tuple[str, StreamsGroup | KafkaError]]:
    """Return the answers of a coordinator; if it cannot be read for all groups, each is described alone.

    The clients of a group decide how large its description is: it must not hide the other groups. Raises
    `UnknownRequestError` if the broker does not know the request, and `OSError` if it does not answer.
    """
    version = connected.version(DESCRIBE_STREAMS_GROUPS)
    body = describe_streams_groups(version, ids, with_nodes=with_nodes)
    try:
        return session.request(connected, DESCRIBE_STREAMS_GROUPS, body, partial(streams_groups, version))
    except UnreadableAnswerError:
        if len(ids) == 1:
            return [(ids[0], KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))]
    found: list[tuple[str, StreamsGroup | KafkaError]] = []
    for id_ in ids:
        again = session.connect(connected.address)  # the connection was closed
        found += described_streams_groups(session, again, [id_], with_nodes=with_nodes)
    return found


def _list_groups(session: BrokerSession) -> Sequence[messages.GroupListing] | KafkaError:
    cluster = _describe_cluster(session)
    if isinstance(cluster, KafkaError):
        return cluster
    if not cluster.brokers:  # all are fenced, for example after a pause
        return KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)
    groups: dict[str, messages.GroupListing] = {}
    for address in cluster.brokers:
        connected = session.connect(address)
        version = connected.version(messages.LIST_GROUPS)
        read = partial(messages.listed_groups, version)
        answer = session.request(connected, messages.LIST_GROUPS, messages.list_groups(version), read)
        if isinstance(answer, KafkaError):
            return answer
        groups |= {group.id: group for group in answer}
    return tuple(groups.values())


def _describe_cluster(
    session: BrokerSession, *, with_operations: bool = False
) -> messages.ClusterDescription | KafkaError:
    body = describe_cluster(with_operations=with_operations)
    return session.request(
        session.any_broker(), messages.DESCRIBE_CLUSTER, body, messages.cluster_description
    )


def _registered_brokers(session: BrokerSession, at: str) -> RegisteredBrokers | KafkaError:
    connected = session.connect(at)
    version = connected.version(messages.DESCRIBE_BROKERS)
    read = partial(messages.registered_brokers, version)
    return session.request(connected, messages.DESCRIBE_BROKERS, messages.describe_brokers(version), read)


def _is_dead(answer: messages.GroupDescription | KafkaError) -> bool:
    return isinstance(answer, messages.GroupDescription) and answer.state == messages.DEAD
