"""Partitions of moved entries, and of the left key that subscriptions of foreign-key joins name."""

import struct

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.scaling.transfers import NO_OWNER, LeftCounts, Transfer, entry_owners
from headwater_spark.engine.serdes.internal_topics import left_key_of, named_partition

_LEFT, _FOREIGN = b"left 3", b"foreign"
_ENTRY = struct.pack(">i", len(_FOREIGN)) + _FOREIGN + _LEFT
_TRANSFER = Transfer("store-changelog", "store-changelog", 2, 5, left=LeftCounts(3, 7))
_RIGHT = default_partition(_LEFT, 3)
_HASH = b"h" * 16


def _subscription(partition: int, head: bytes = b"\x01\x02" + _HASH) -> bytes:
    """Return it as `SubscriptionWrapperSerde` writes version 1."""
    return head + _LEFT + struct.pack(">i", partition)


@pytest.mark.parametrize("head", [b"\x01\x02" + _HASH, b"\x81\x02"], ids=["with a hash", "without a hash"])
def test_a_subscription_names_the_partition_of_its_left_key(head: bytes) -> None:
    for partition in range(4):
        value = _subscription(partition, head)
        assert (left_key_of(value), named_partition(value)) == (_LEFT, partition)
        assert _TRANSFER.is_misdirected(_ENTRY, value) is (partition != _RIGHT)
        assert _TRANSFER.value(_ENTRY, value) == _subscription(default_partition(_LEFT, 7), head)


@pytest.mark.parametrize("value", [None, b"", b"\x00\x02" + _HASH + _LEFT, b"\x80\x02" + _LEFT])
def test_a_value_that_names_no_partition_is_kept_and_not_misdirected(value: bytes | None) -> None:
    """A tombstone, an empty value, and a subscription of version 0, which has no partition."""
    assert not _TRANSFER.is_misdirected(_ENTRY, value)
    assert _TRANSFER.value(_ENTRY, value) == value


def test_values_of_other_stores_are_not_read() -> None:
    transfer = attrs.evolve(_TRANSFER, left=None)
    value = _subscription(_RIGHT + 1)
    assert not transfer.is_misdirected(_ENTRY, value)
    assert transfer.value(_ENTRY, value) == value


STORE = MovedStore("s", "app-s-changelog", lambda key: key[1:])
"""Its entries have a byte before the record key."""


@given(
    st.lists(st.none() | st.binary(min_size=1, max_size=12)),
    st.integers(1, 12),
    st.integers(0, 40),
    st.integers(1, 40),
)
def test_owners_before_and_after_a_move_are_those_of_single_entries(
    keys: list[bytes | None], initial: int, grown: int, added: int
) -> None:
    numbers = Processors(initial, initial + grown), Processors(initial, initial + grown + added)
    assert entry_owners(STORE, keys, *numbers) == [
        [NO_OWNER if key is None else STORE.processor(key, processors) for key in keys]
        for processors in numbers
    ]
