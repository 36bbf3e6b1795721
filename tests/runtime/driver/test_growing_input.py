"""Steps while partitions are added at any moment: each record once, those of a key in order.

Producers learn of added partitions at different moments, also between two requests of the driver. The client
is stopped and started between any two steps.
"""

from collections import defaultdict
from collections.abc import Sequence

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headwater_spark.driver.input.expansion import InputExpansion
from headwater_spark.driver.input.step_planner import StepPlanner
from headwater_spark.engine.record_order import PartitionGroup
from headwater_spark.engine.records import InputRecord, TopicPartition
from headwater_spark.engine.scaling.processors import Processors

_KEYS = 12
_TWO = Processors(2, 2)


@attrs.define
class Topic:
    """A topic, its producers, and the layout that the driver has of it."""

    partitions: int = 2
    known: int = 2
    """The number of partitions in the driver's layout."""
    records: dict[int, list[InputRecord]] = attrs.field(factory=lambda: defaultdict(list))
    counts: list[int] = attrs.field(factory=lambda: [2, 2])
    """The number of partitions that each producer knows."""
    produced: dict[int, int] = attrs.field(factory=lambda: defaultdict(int))
    due: list[tuple[str, int]] = attrs.field(factory=list)
    """What happens between the next requests for end offsets: (rule, its argument)."""
    clock: int = 0
    repartition_topics: frozenset[str] = frozenset()

    def input_partitions(self, _: str) -> list[TopicPartition]:
        return [("in", each) for each in range(self.known)]

    def is_expanded(self, _: str) -> bool:
        return self.known > 2

    def produce(self, key: int) -> None:
        """Append the next record of a key, whose producer is always the same."""
        partition = key % self.counts[key % len(self.counts)]
        queue = self.records[partition]
        self.clock += 1
        number = self.produced[key]
        queue.append(("in", partition, len(queue), self.clock, b"%d" % key, b"%d" % number, ()))
        self.produced[key] += 1

    def happen(self) -> None:
        """Let happen what is due up to the next pause."""
        while self.due:
            what, which = self.due.pop(0)
            if what == "pause":
                return
            if what == "produce":
                self.produce(which)
            else:
                self.counts[which % 2] = self.partitions

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        ends = {}
        for topic, partition in partitions:
            ends[topic, partition] = len(self.records[partition])
            self.happen()
        return ends


@attrs.define
class Committed:
    """The offsets of the group, as `GroupOffsets` returns them."""

    topic: Topic
    offsets: dict[TopicPartition, int] = attrs.field(factory=dict)

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self.topic.end_offsets(partitions)

    def committed_processors(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: _TWO.owner(each[1]) for each in partitions if each in self.offsets}


class GrowingInput(RuleBasedStateMachine):
    topic: Topic
    committed: Committed
    planner: StepPlanner
    expansion: InputExpansion

    @initialize(limit=st.integers(1, 30))
    def set_up(self, limit: int) -> None:
        self.topic = Topic()
        self.committed = Committed(self.topic)
        self.limit = limit
        self.processed: dict[int, list[int]] = defaultdict(list)
        self.restart()

    @rule()
    def restart(self) -> None:
        self.planner = StepPlanner(self.limit, 0, _TWO.owner)
        self.planner.start(self.committed.offsets)
        self.expansion = InputExpansion(
            subtopology="0",
            processors=_TWO,
            layout=lambda: self.topic,  # type: ignore[arg-type, return-value]
            offsets=self.committed,  # type: ignore[arg-type]
            request_check=lambda: None,
        )

    @rule(keys=st.lists(st.integers(0, _KEYS - 1), max_size=8))
    def produce(self, keys: list[int]) -> None:
        for key in keys:
            self.topic.produce(key)

    @rule()
    def expand(self) -> None:
        self.topic.partitions = min(8, self.topic.partitions * 2)

    @rule(producer=st.integers(0, 1))
    def learn(self, producer: int) -> None:
        self.topic.counts[producer] = self.topic.partitions

    @rule()
    def check_topics(self) -> None:
        self.topic.known = self.topic.partitions

    @rule(
        due=st.lists(
            st.tuples(st.sampled_from(["produce", "learn", "pause"]), st.integers(0, _KEYS - 1)), max_size=20
        )
    )
    def step(self, due: list[tuple[str, int]]) -> None:
        self.topic.due = due
        ends = self.expansion.readable_ends({}, self.planner.positions)
        self.topic.due = []
        ranges = self.planner.next_ranges(ends, 0)
        awaited = self.planner.find_awaited(ranges, ends)
        held_back: dict[TopicPartition, int] = {}
        for task in range(2):
            records = [
                record
                for (_, partition), (first, end) in sorted(ranges.items())
                if _TWO.owner(partition) == task
                for record in self.topic.records[partition][first:end]
            ]
            own = [each for each in awaited if _TWO.owner(each[1]) == task]
            group = PartitionGroup(records, own, lambda record: record)
            for record in group:
                self.processed[int(record[4] or b"")].append(int(record[5] or b""))
            for each, number in group.held_back.items():
                held_back[each] = ranges[each][1] - number
        for each, (first, end) in ranges.items():
            position = held_back.get(each, end)
            if position > first:
                self.committed.offsets[each] = position
        self.planner.advance(ranges, held_back, ends, 0)

    @invariant()
    def each_record_is_processed_once_and_in_the_order_of_its_key(self) -> None:
        for found in getattr(self, "processed", {}).values():
            assert found == list(range(len(found)))

    def teardown(self) -> None:
        if not hasattr(self, "processed"):
            return
        self.check_topics()
        for _ in range(2_000):
            if self._is_done():
                break
            self.step([])
        assert self._is_done()
        self.each_record_is_processed_once_and_in_the_order_of_its_key()

    def _is_done(self) -> bool:
        return all(len(self.processed[key]) == number for key, number in self.topic.produced.items())


TestGrowingInput = GrowingInput.TestCase


def test_a_producer_that_learns_of_a_partition_between_two_answers_of_the_brokers() -> None:
    machine = GrowingInput()
    machine.set_up(10)
    machine.topic.partitions = machine.topic.known = 4
    machine.topic.produce(2)
    for _ in range(3):
        machine.step([])
    assert machine.processed[2] == [0]
    machine.step([("produce", 2), ("learn", 0), ("produce", 2)])
    assert machine.topic.counts[0] == 4
    machine.teardown()
    assert machine.processed[2] == [0, 1, 2]
