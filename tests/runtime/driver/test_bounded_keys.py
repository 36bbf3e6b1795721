"""Of many keys of a partition, few are in memory at the same time."""

from hypothesis import example, given
from hypothesis import strategies as st

from headwater_spark.driver.processor_move.entry_copy import bounded_keys

_KEYS = st.binary(max_size=2)


@example([(b"%d" % each, each) for each in range(20)], 3)
@given(st.lists(st.tuples(_KEYS, st.none() | st.integers())), st.integers(1, 5))
def test_passes_have_the_last_value_of_each_key_once(
    records: list[tuple[bytes, int | None]], most: int
) -> None:
    last = dict(records)
    found: dict[bytes, int] = {}
    for keys in bounded_keys(most):
        for key, value in records:
            if value is None:
                keys.remove(key)
            else:
                keys.put(key, value)
        assert len(keys.found) <= most
        assert not keys.found.keys() & found.keys()
        found.update(keys.found)
    assert found == {key: value for key, value in last.items() if value is not None}
