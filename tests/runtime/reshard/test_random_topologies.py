"""Reshards of random topologies: entries and output as if they had the new counts from the start.

Ten topologies run in one JVM. `HEADWATER_FUZZ_EXAMPLES` is the number of groups of ten, and
`HEADWATER_FUZZ_SEED` the first of them.
"""

import os
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs
import pytest

from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.reshard.checks import has_members
from headwater_spark.driver.reshard.start import ReshardOptions
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.oracle.running_application import running_application
from tests.runtime.reshard.compared_applications import Compared, Records, batches, random_steps
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.soak, pytest.mark.timeout(1800)]

_GROUPS = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "3"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1"))
_IN_GROUP = 10
_SECONDS = 300.0
_SOURCES = ("orders", "customers", "contracts")


@attrs.frozen
class _Reshard:
    """A random topology, its records before and after the reshard, and the options of the reshard."""

    seed: int
    compared: Compared
    first: Records
    second: Records
    options: ReshardOptions

    @classmethod
    def of(cls, seed: int, servers: str, topics: Topics, unique: Callable[[str], str]) -> "_Reshard":
        chance = random.Random(seed)  # noqa: S311 - the same topology in each run
        before = _counts({source: chance.randint(1, 3) for source in _SOURCES})
        after = _counts({source: before[source] + chance.randrange(4) for source in _SOURCES})
        if after == before:
            after = {topic: count + 1 for topic, count in before.items()}
        config = {"default.dsl.store": chance.choice(("rocksDB", "in_memory"))}
        if chance.randrange(2):
            config["processing.guarantee"] = "exactly_once_v2"
        compared = Compared(servers, topics, unique, random_steps(seed), before, after, config)
        series = batches(before, keys=40, size=150, seed=seed)
        options = ReshardOptions(processes=2 if chance.randrange(5) == 0 else 1)
        return cls(seed, compared, next(series), next(series), options)

    def differences(self) -> list[str]:
        """Return the stores whose entries differ."""
        moved, fresh = (self.compared.entries(name) for name in self.compared.names)
        return [
            f"{self.seed}: {place}: {_difference(moved.get(place, {}), fresh.get(place, {}))}"
            for place in sorted({*moved, *fresh})
            if moved.get(place) != fresh.get(place)
        ]


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {**counts, "payments": counts["orders"]}


def _difference(moved: Mapping[bytes, object], fresh: Mapping[bytes, object]) -> str:
    keys = sorted({*moved, *fresh})
    return str(
        [(key, moved.get(key), fresh.get(key)) for key in keys if moved.get(key) != fresh.get(key)][:3]
    )


def _process(servers: str, group: Sequence[_Reshard], records: Callable[[_Reshard], Records]) -> None:
    """Write records for both applications of each topology, and run all of them."""
    applications = [(each, name) for each in group for name in each.compared.names]
    topics = Topics(servers)
    topics.send(
        (full, default_partition(key, count), key, value, timestamp, ())
        for each, name in applications
        for topic, found in records(each).items()
        for full in [f"{name}.{topic}"]
        for count in [topics.partitions(full)]
        for key, value, timestamp in found
    )
    documents = [each.compared.json(name) for each, name in applications]
    with running_application(servers, *documents, memory="2g"):
        for each, name in applications:
            assert until(partial(each.compared.is_processed, name), _SECONDS), (each.seed, name)


@pytest.mark.parametrize("group", range(_FIRST, _FIRST + _GROUPS))
def test_random_topologies_are_as_if_they_had_the_new_counts_from_the_start(
    group: int, kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    servers = kafka.bootstrap_servers
    topics = Topics(servers)
    seeds = range(group * _IN_GROUP, (group + 1) * _IN_GROUP)
    reshards = [_Reshard.of(seed, servers, topics, unique) for seed in seeds]
    _process(servers, reshards, lambda each: each.first)
    wrong, moved = [], 0
    for each in reshards:
        compared = each.compared
        assert until(partial(_has_ended, compared), _SECONDS)
        moved += bool(compared.reshard(each.options).written)
        wrong += each.differences()
    assert not wrong, "\n".join(wrong)
    assert moved > _IN_GROUP // 2
    written = {name: each.compared.written(name) for each in reshards for name in each.compared.names}
    _process(servers, reshards, lambda each: each.second)
    for each in reshards:
        outputs = [each.compared.outputs(name, written[name]) for name in each.compared.names]
        wrong += each.differences()
        wrong += [
            f"{each.seed}: {topic}: {_difference(outputs[0][topic], outputs[1][topic])}"
            for topic in outputs[0]
            if outputs[0][topic] != outputs[1][topic]
        ]
    assert not wrong, "\n".join(wrong)
    used = {name for each in reshards for name in each.compared.names}
    for topic in topics.names():
        if any(topic.startswith((f"{name}.", f"{name}-")) for name in used):
            topics.delete(topic)


def _has_ended(compared: Compared) -> bool:
    return not has_members(compared.connection, compared.moved)
