"""Settings of topics are read as librdkafka reads them, from whichever broker answers."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import cast

import attrs
import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from hypothesis import given
from hypothesis import strategies as st

from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest, admin, group_client
from headwater.kafka.admin import Admin
from headwater.kafka.group_client import GroupClient
from headwater.kafka.topic_settings import DESCRIBE_CONFIGS, TopicConfigs, topic_configs
from headwater.kafka.wire import ResponseReader, compact_array, compact_text
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.kafka.prepared_broker import prepared_broker

_SECONDS = 60.0
_CLOSED = "127.0.0.1:1"
Facts = tuple[str | None, int, Mapping[str, str | None]]
"""The value of a setting, the number of its source, and its synonyms."""


def nullable(text: str | None) -> bytes:
    return b"\x00" if text is None else compact_text(text)


def encoded_setting(name: str, facts: Facts) -> bytes:
    value, source, synonyms = facts
    others = compact_array(
        compact_text(other) + nullable(text) + bytes([5]) + b"\x00" for other, text in synonyms.items()
    )
    about = nullable(value) + b"\x00" + bytes([source]) + b"\x00" + others + b"\x02\x00\x00"
    return compact_text(name) + about


def encoded_topic(name: str, code: int, settings: Mapping[str, Facts]) -> bytes:
    entries = compact_array(encoded_setting(each, facts) for each, facts in settings.items())
    return code.to_bytes(2, "big") + b"\x00" + b"\x02" + compact_text(name) + entries + b"\x00"


def encoded_answer(*topics: bytes) -> bytes:
    """Return the answer about encoded topics, with throttle time and tagged fields."""
    return b"\x00" * 4 + compact_array(topics) + b"\x00"


def requested_configs(address: str, *names: str) -> TopicConfigs:
    """Request settings of a server with a long timeout."""
    client = Admin(Connection(bootstrap_servers=(address,)), _SECONDS)
    return client.topic_configs(client.request_topic_configs(names))


def facts_of(config: Mapping[str, ConfigEntry]) -> Mapping[str, Facts]:
    return {
        name: (
            entry.value,
            cast("int", entry.source),  # annotated as an enum
            {other: each.value for other, each in (entry.synonyms or {}).items()},
        )
        for name, entry in config.items()
    }


def named_synonyms(topics: Mapping[str, Mapping[str, Facts]]) -> object:
    """Return the facts, with the names of the synonyms instead of their values."""
    return {
        topic: {name: (value, source, {*others}) for name, (value, source, others) in facts.items()}
        for topic, facts in topics.items()
    }


_VALUES = st.none() | st.sampled_from(["", "1", "2", "compact", "ü" * 200])
_FACTS = st.tuples(
    _VALUES, st.integers(1, 6), st.dictionaries(st.sampled_from(["log.a", "log.b"]), _VALUES, max_size=2)
)
_TOPICS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c.ms"]), _FACTS), max_size=20)


@given(_TOPICS)
def test_settings_of_many_topics_are_read_as_written(topics: list[dict[str, Facts]]) -> None:
    answer = encoded_answer(*(encoded_topic(f"t{at}", 0, settings) for at, settings in enumerate(topics)))
    found = topic_configs([f"t{at}" for at in range(len(topics))], ResponseReader(answer))
    read = {name: facts_of(config) for name, config in found.items() if not isinstance(config, KafkaError)}
    assert read == {f"t{at}": settings for at, settings in enumerate(topics)}


def test_topics_share_equal_settings() -> None:
    """More different settings than are compared with the next topic."""
    different: list[dict[str, Facts]] = [{"a": (str(each), 1, {}), "b": ("x", 5, {})} for each in range(20)]
    topics = [different[each] for each in (*range(20), 19, 12, 0)]
    answer = encoded_answer(*(encoded_topic(f"t{at}", 0, settings) for at, settings in enumerate(topics)))
    found = topic_configs([f"t{at}" for at in range(len(topics))], ResponseReader(answer))
    assert found["t20"] is found["t19"]
    assert found["t21"] is found["t12"]
    read = {name: facts_of(config) for name, config in found.items() if not isinstance(config, KafkaError)}
    assert read == {f"t{at}": settings for at, settings in enumerate(topics)}


@given(_TOPICS, st.data())
def test_a_short_answer_is_refused(topics: list[dict[str, Facts]], data: st.DataObject) -> None:
    answer = b"\x00" * 4 + compact_array(
        encoded_topic(f"t{at}", 0, settings) for at, settings in enumerate(topics)
    )
    end = data.draw(st.integers(0, len(answer) - 1))
    with pytest.raises(ValueError, match="too short"):
        topic_configs([f"t{at}" for at in range(len(topics))], ResponseReader(answer[:end]))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        topic_configs(["a"], ResponseReader(data))


@pytest.mark.parametrize(
    "answered", [("a",), (), ("a", "b", "c"), ("a", "c"), ("a", "b", "b"), ("a", "a")], ids="-".join
)
def test_an_answer_about_other_topics_is_refused(answered: tuple[str, ...]) -> None:
    """A topic that is missing in the answer would look as if it did not exist."""
    answer = encoded_answer(*(encoded_topic(name, 0, {}) for name in answered))
    with pytest.raises(ValueError, match="other topics"):
        topic_configs(["a", "b"], ResponseReader(answer))


def test_topics_may_be_answered_in_another_order() -> None:
    answer = encoded_answer(*(encoded_topic(name, 0, {}) for name in ("b", "a")))
    assert topic_configs(["a", "b"], ResponseReader(answer)) == {"a": {}, "b": {}}


def test_the_first_of_equal_synonyms_has_priority() -> None:
    """As Kafka lists them: a setting of the broker, then its default with the same name."""
    synonyms = compact_array(
        compact_text("log.a") + compact_text(value) + bytes([source]) + b"\x00"
        for value, source in (("of the broker", 4), ("default", 5))
    )
    setting = compact_text("a") + compact_text("own") + b"\x00\x01\x00" + synonyms + b"\x02\x00\x00"
    topic = b"\x00\x00\x00\x02" + compact_text("t") + compact_array([setting]) + b"\x00"
    config = topic_configs(["t"], ResponseReader(encoded_answer(topic)))["t"]
    assert not isinstance(config, KafkaError)
    assert facts_of(config) == {"a": ("own", 1, {"log.a": "of the broker"})}


def test_an_answer_that_cannot_be_read_is_reported_at_once() -> None:
    with (
        prepared_broker(lambda names: encoded_answer(encoded_topic(names[0], 0, {}))) as broker,
        pytest.raises(ProblemsError) as refused,
    ):
        requested_configs(broker.address, "a", "b")
    (problem,) = refused.value.problems
    assert problem.code is ProblemCode.REQUEST_NOT_ANSWERED
    found = "sent an answer that cannot be read: the response is about other topics than the request"
    assert problem.found == f"{broker.address} {found}"
    assert "stopped" not in problem.fix
    assert broker.described == [("a", "b")]


def test_all_parts_of_a_request_use_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "CHUNK", 2)
    with prepared_broker(
        lambda names: encoded_answer(*(encoded_topic(each, 0, {}) for each in names))
    ) as broker:
        assert requested_configs(broker.address, *"abcde") == {name: {} for name in "abcde"}
    assert broker.described == [("a", "b"), ("c", "d"), ("e",)]
    assert broker.connections == 1


@pytest.mark.broker
@pytest.mark.every_broker
def test_librdkafka_reads_equal_settings(kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    """The first broker does not answer; one of the topics does not exist.

    Of synonyms with equal names, librdkafka's client keeps the last value, which has the lowest priority.
    """
    first, second, missing = (unique(name) for name in ("first", "second", "missing"))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    own = {first: {"cleanup.policy": "compact", "retention.ms": "1"}, second: {"segment.bytes": "1048576"}}
    topics = [NewTopic(name, 1, 1, config=config) for name, config in own.items()]
    for future in admin.create_topics(topics).values():
        future.result()
    assert until(lambda: own.keys() <= admin.list_topics(timeout=_SECONDS).topics.keys(), _SECONDS)
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in own]
    expected = {
        resource.name: facts_of(future.result())
        for resource, future in admin.describe_configs(resources).items()
    }
    client = GroupClient(Connection(bootstrap_servers=(_CLOSED,)), _SECONDS)
    found = client.topic_configs([[first, missing, second]], (_CLOSED, kafka.bootstrap_servers))
    assert not isinstance(found, KafkaError)
    error = found[missing]
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    read = {name: facts_of(config) for name, config in found.items() if not isinstance(config, KafkaError)}
    assert named_synonyms(read) == named_synonyms(expected)


@pytest.mark.broker
def test_brokers_with_older_versions_of_the_request_are_read(
    kafka: LocalBroker, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = unique("topic")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "1"})])[topic].result()
    assert until(lambda: topic in admin.list_topics(timeout=_SECONDS).topics, _SECONDS)
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), _SECONDS)
    request = SnapshotRequest(names=frozenset({topic}))
    reader.read(request)
    before = reader.requests
    reader.read(request)
    requests = reader.requests - before
    threads: list[threading.Thread] = []
    send = Admin._describe_configs

    def recorded(
        self: Admin, kind: ResourceType, names: Sequence[str]
    ) -> dict[str, Future[Mapping[str, ConfigEntry]]]:
        threads.append(threading.current_thread())
        return send(self, kind, names)

    monkeypatch.setattr(Admin, "_describe_configs", recorded)
    monkeypatch.setattr(
        group_client, "DESCRIBE_CONFIGS", attrs.evolve(DESCRIBE_CONFIGS, lowest=99, highest=99)
    )
    before = reader.requests
    snapshot = reader.read(request)
    assert snapshot.topics[topic].config == {"retention.ms": "1"}
    assert reader.requests - before == requests + 1
    assert threads == [threading.current_thread()] * 2, "settings of a broker and of the topic"
