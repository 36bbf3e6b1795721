"""Settings of topics are read as librdkafka reads them, from whichever broker answers."""

import contextlib
from collections.abc import Callable, Mapping
from typing import cast

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

from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest
from headwater.kafka.config_messages import topic_configs
from headwater.kafka.group_client import GroupClient
from headwater.kafka.wire import ResponseReader, compact_array, compact_text
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until

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


def facts_of(config: Mapping[str, ConfigEntry]) -> Mapping[str, Facts]:
    return {
        name: (
            entry.value,
            cast("int", entry.source),  # annotated as an enum
            {other: each.value for other, each in (entry.synonyms or {}).items()},
        )
        for name, entry in config.items()
    }


_VALUES = st.none() | st.sampled_from(["", "1", "2", "compact", "ü" * 200])
_FACTS = st.tuples(
    _VALUES, st.integers(1, 6), st.dictionaries(st.sampled_from(["log.a", "log.b"]), _VALUES, max_size=2)
)
_TOPICS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c.ms"]), _FACTS), max_size=20)


@given(_TOPICS)
def test_settings_of_many_topics_are_read_as_written(topics: list[dict[str, Facts]]) -> None:
    answer = compact_array(encoded_topic(f"t{at}", 0, settings) for at, settings in enumerate(topics))
    found = topic_configs(ResponseReader(b"\x00" * 4 + answer + b"\x00"))
    read = {name: facts_of(config) for name, config in found.items() if not isinstance(config, KafkaError)}
    assert read == {f"t{at}": settings for at, settings in enumerate(topics)}


@given(_TOPICS, st.data())
def test_a_short_answer_is_refused(topics: list[dict[str, Facts]], data: st.DataObject) -> None:
    answer = b"\x00" * 4 + compact_array(
        encoded_topic(f"t{at}", 0, settings) for at, settings in enumerate(topics)
    )
    end = data.draw(st.integers(0, len(answer) - 1))
    with pytest.raises(ValueError, match="too short"):
        topic_configs(ResponseReader(answer[:end]))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        topic_configs(ResponseReader(data))


@pytest.mark.broker
@pytest.mark.every_broker
def test_settings_are_equal_to_those_of_librdkafka(kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    """The first broker does not answer; one of the topics does not exist."""
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
    found = client.topic_configs([first, missing, second], (_CLOSED, kafka.bootstrap_servers))
    assert not isinstance(found, KafkaError)
    error = found[missing]
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    read = {name: facts_of(config) for name, config in found.items() if not isinstance(config, KafkaError)}
    assert read == expected


@pytest.mark.broker
def test_brokers_with_older_versions_of_the_request_are_read(
    kafka: LocalBroker, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = unique("topic")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "1"})])[topic].result()
    assert until(lambda: topic in admin.list_topics(timeout=_SECONDS).topics, _SECONDS)
    unknown = KafkaError(KafkaError.UNSUPPORTED_VERSION)
    monkeypatch.setattr(GroupClient, "topic_configs", lambda *_: unknown)
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), _SECONDS)
    snapshot = reader.read(SnapshotRequest(names=frozenset({topic})))
    assert snapshot.topics[topic].config == {"retention.ms": "1"}
