import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.model.problems import Location, ProblemCode
from spark_jobs.runtime.engine.partitioners.static import TaskMigrated, built_in, static_partition

AT = Location("orders.yaml", 4, 3)
CONFIGS = {
    "initial-hash": {"static.partitioner.initial.partitions": "6"},
    "key-prefix": {
        "static.partitioner.table": "acme=0, globex=7",
        "static.partitioner.initial.partitions": "6",
    },
    "range": {"static.partitioner.bounds": "g,n,t"},
}


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
