"""The processors of many entries are those of each of them."""

from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.scaling.transfers import NO_OWNER, entry_owners

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
