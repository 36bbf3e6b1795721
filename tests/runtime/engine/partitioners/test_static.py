"""Partitioners that keep keys on their partitions when partitions are added."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.problems import Location, ProblemCode
from headwater_spark.engine.partitioners.hashing import default_partition, linear_partition
from headwater_spark.engine.partitioners.static import TaskMigrated, built_in, static_partition
from headwater_spark.engine.scaling.processors import Processors

AT = Location("orders.yaml", 4, 3)
CONFIGS = {
    "initial-hash": {"static.partitioner.initial.partitions": "6"},
    "key-prefix": {
        "static.partitioner.table": "acme=0, globex=7",
        "static.partitioner.initial.partitions": "6",
    },
    "range": {"static.partitioner.bounds": "g,n,t"},
}


@given(key=st.binary(), initial=st.integers(1, 20), added=st.integers(0, 100))
def test_linear_hash_keeps_a_key_with_its_processor(key: bytes, initial: int, added: int) -> None:
    first = default_partition(key, initial)
    found = linear_partition(key, initial, initial + added)
    assert Processors(initial, initial).owner(found) == first
    assert first in {found, *Processors(initial, initial).earlier_partitions(found)}
    assert linear_partition(key, initial, initial * 4) == default_partition(key, initial * 4)


def test_linear_hash_is_a_partitioner_of_documents() -> None:
    partitioner, problems = built_in("linear-hash", {"static.partitioner.initial.partitions": "2"}, AT)
    assert partitioner is not None
    assert not problems
    keys = [f"k{each}" for each in range(50)]
    found = {key: static_partition(partitioner, "orders", key, 3) for key in keys}
    assert set(found.values()) == {0, 1, 2}
    assert found == {key: linear_partition(key.encode(), 2, 3) for key in keys}
    missing, problems = built_in("linear-hash", {}, AT)
    assert missing is None
    assert [problem.code for problem in problems] == [ProblemCode.INVALID_CONFIG]


@pytest.mark.parametrize("name", CONFIGS)
@given(
    key=st.one_of(st.text(), st.binary(), st.integers()),
    counts=st.tuples(st.integers(8, 500), st.integers(8, 500)),
)
def test_a_key_stays_on_its_partition(name: str, key: object, counts: tuple[int, int]) -> None:
    partitioner, problems = built_in(name, CONFIGS[name], AT)
    assert partitioner is not None
    assert not problems
    assert len({static_partition(partitioner, "orders", key, count) for count in counts}) == 1


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("key-prefix", "acme:17", 0),
        ("key-prefix", "globex:1", 7),
        ("key-prefix", "acme", 0),
        ("range", "apple", 0),
        ("range", "g", 1),
        ("range", "mango", 1),
        ("range", "zebra", 3),
        ("range", b"pear", 2),
    ],
)
def test_partitions_of_keys(name: str, key: object, expected: int) -> None:
    partitioner, _ = built_in(name, CONFIGS[name], AT)
    assert partitioner is not None
    assert static_partition(partitioner, "orders", key, 8) == expected


def test_keys_of_one_prefix_stay_together_without_a_table() -> None:
    partitioner, _ = built_in("key-prefix", {"static.partitioner.initial.partitions": "5"}, AT)
    assert partitioner is not None
    assert len({static_partition(partitioner, "orders", f"initech:{each}", 5) for each in range(50)}) == 1


def test_a_record_for_a_missing_partition_waits_for_the_expansion() -> None:
    partitioner, _ = built_in("key-prefix", CONFIGS["key-prefix"], AT)
    assert partitioner is not None
    with pytest.raises(TaskMigrated, match="requires partition 7 of 6"):
        static_partition(partitioner, "orders", "globex:1", 6)


@pytest.mark.parametrize(
    ("name", "config", "key", "found"),
    [
        ("initial-hash", {}, "static.partitioner.initial.partitions", "nothing"),
        ("initial-hash", {"static.partitioner.initial.partitions": "0"}, "initial.partitions", "0"),
        ("initial-hash", {"static.partitioner.initial.partitions": "six"}, "initial.partitions", "six"),
        ("key-prefix", {}, "static.partitioner.initial.partitions", "nothing"),
        ("key-prefix", {"static.partitioner.table": "acme"}, "static.partitioner.table", "acme"),
        ("key-prefix", {"static.partitioner.table": "acme=-1"}, "static.partitioner.table", "-1"),
        ("range", {}, "static.partitioner.bounds", "nothing"),
        ("range", {"static.partitioner.bounds": "n,g"}, "static.partitioner.bounds", "n,g"),
        ("tenants", {"static.partitioner.class": "tenants"}, "static.partitioner.class", "tenants"),
    ],
)
def test_invalid_configs_are_problems(name: str, config: dict[str, str], key: str, found: str) -> None:
    partitioner, (problem,) = built_in(name, config, AT)
    assert partitioner is None
    assert problem.code is ProblemCode.INVALID_CONFIG
    assert key in problem.fix
    assert problem.found == found


def test_a_users_class_is_not_checked() -> None:
    assert built_in("shop.tenants:ByTenant", {}, AT) == (None, ())
