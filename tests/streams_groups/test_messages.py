"""Answers to StreamsGroupDescribe are read as Kafka writes them; other bytes are refused, within bounds."""

import contextlib
from collections.abc import Callable, Sequence
from struct import pack
from typing import Any, Self, TypeVar

import attrs
import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from headwater.describe import read_description
from headwater.kafka import streams_group_messages
from headwater.kafka.broker_connection import Message, UnreadableAnswerError
from headwater.kafka.group_client import described_streams_groups
from headwater.kafka.streams_group_messages import describe_streams_groups, streams_groups
from headwater.kafka.wire import ResponseReader, compact_array, compact_text, unsigned_varint
from headwater.model.streams_groups import DescriptionStatus, GroupTopic, StreamsGroup, StreamsMember
from tests.describe.texts import SMALL
from tests.streams_groups.groups import encoded, group_of_text

T = TypeVar("T")
_TOPIC = GroupTopic(
    name="app-x-changelog", partitions=3, replication_factor=-1, config={"cleanup.policy": "compact"}
)
_PLAIN = group_of_text("app", read_description(SMALL)[0])
GROUP = attrs.evolve(
    _PLAIN,
    epoch=7,
    assignment_epoch=6,
    topology_epoch=2,
    assignor="sticky",
    subtopologies=tuple(attrs.evolve(part, changelogs=(_TOPIC,)) for part in _PLAIN.subtopologies),
    members=(
        StreamsMember(
            id="m-1",
            client_id="client",
            host="/127.0.0.1",
            process_id="p",
            topology_epoch=1,
            is_classic=True,
            active={"0": (0, 2), "1": (1,)},
            standby={"1": (0,)},
            warm_up={"0": (1,)},
        ),
    ),
)


def read(data: bytes, version: int) -> dict[str, StreamsGroup | KafkaError]:
    return dict(streams_groups(version, ResponseReader(data)))


def test_version_1_has_everything() -> None:
    assert read(encoded([GROUP], 1), 1) == {"app": GROUP}


def test_version_0_has_no_nodes() -> None:
    without = attrs.evolve(GROUP, nodes=None, status=DescriptionStatus.NOT_REQUESTED, assignor="")
    assert read(encoded([GROUP], 0), 0) == {"app": without}


def test_a_group_without_a_topology_and_members_is_read() -> None:
    empty = StreamsGroup(id="new", state="Empty", status=DescriptionStatus.NOT_STORED)
    assert read(encoded([empty], 1), 1) == {"new": empty}


def test_an_error_is_that_of_its_group() -> None:
    found = read(encoded([StreamsGroup(id="none", state="")], 1, KafkaError.GROUP_ID_NOT_FOUND), 1)
    error = found["none"]
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.GROUP_ID_NOT_FOUND


def test_nodes_that_are_announced_and_missing_are_not_stored() -> None:
    group = attrs.evolve(GROUP, nodes=None, status=DescriptionStatus.AVAILABLE)
    (found,) = read(encoded([group], 1), 1).values()
    assert isinstance(found, StreamsGroup)
    assert (found.nodes, found.status) == (None, DescriptionStatus.NOT_STORED)


def test_members_with_another_epoch_are_found() -> None:
    assert [member.id for member in GROUP.with_other_topology] == ["m-1"]
    assert not attrs.evolve(GROUP, topology_epoch=1).with_other_topology


@pytest.mark.parametrize("version", [0, 1])
@given(data=st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(version: int, data: bytes) -> None:
    with contextlib.suppress(ValueError):
        read(data, version)


@pytest.mark.parametrize("version", [0, 1])
@given(data=st.data())
def test_changed_answers_are_read_or_refused(version: int, data: st.DataObject) -> None:
    answer = bytearray(encoded([GROUP], version))
    for _ in range(data.draw(st.integers(1, 4))):
        answer[data.draw(st.integers(0, len(answer) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        read(bytes(answer[: data.draw(st.integers(0, len(answer)))]), version)


def test_answers_with_too_many_items_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item takes a byte at least, so that an answer of 100 MB could have 100 million."""
    monkeypatch.setattr(streams_group_messages, "_MOST_ITEMS", 10)
    with pytest.raises(ValueError, match="more than 10 items"):
        read(encoded([attrs.evolve(GROUP, subtopologies=GROUP.subtopologies * 9)], 0), 0)


class _Coordinator:
    """Answers like a session and its only connection; it closes the connection after an unreadable answer."""

    address = "broker:9092"

    def __init__(self, groups: Sequence[StreamsGroup]) -> None:
        self._groups = groups
        self._is_open = True

    def version(self, message: Message) -> int:
        del message
        return 1

    def connect(self, address: str) -> Self:
        assert address == self.address
        self._is_open = True
        return self

    def request(
        self, connected: Self, message: Message, body: bytes, read: Callable[[ResponseReader], T]
    ) -> T:
        assert connected._is_open
        asked = [group for group in self._groups if compact_text(group.id) in body]
        try:
            return read(ResponseReader(encoded(asked, 1)))
        except ValueError as error:
            self._is_open = False
            raise UnreadableAnswerError(message.name) from error


def test_a_large_description_does_not_hide_other_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    small = StreamsGroup(id="small", state="Empty", status=DescriptionStatus.NOT_STORED)
    large = attrs.evolve(GROUP, id="large", subtopologies=GROUP.subtopologies * 9)
    coordinator: Any = _Coordinator([large, small])
    monkeypatch.setattr(streams_group_messages, "_MOST_ITEMS", 10)

    found = dict(described_streams_groups(coordinator, coordinator, ["large", "small"], with_nodes=True))

    assert found["small"] == small
    error = found["large"]
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_length_without_items_is_refused() -> None:
    with pytest.raises(ValueError, match="too short"):
        read(pack(">i", 0) + unsigned_varint(2**32), 1)


def test_requests_ask_for_nodes_since_version_1() -> None:
    ids = compact_array([compact_text("app")])
    assert describe_streams_groups(0, ["app"], with_nodes=True) == ids + b"\x00\x00"
    assert describe_streams_groups(1, ["app"], with_nodes=True) == ids + b"\x00\x01\x00"
    assert describe_streams_groups(1, ["app"], with_nodes=False) == ids + b"\x00\x00\x00"
