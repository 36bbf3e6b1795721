"""Which inputs of an application are watched, and from where (`input.watch`)."""

from collections.abc import Mapping

import attrs

from headwater.kafka import Connection
from headwater_spark.driver.input.watch import InputWatch
from headwater_spark.driver.offsets import Offsets
from headwater_spark.driver.queries.specs import QuerySpecs
from headwater_spark.engine.records import TopicPartition
from headwater_spark.spark_internals.input_signals import InputSignal, InputSignals
from headwater_spark.worker import clients

_MAX_WAIT_SECONDS = 10.0
"""Then the query checks for new records anyway. `TopicWatch` requests a signal earlier if necessary."""
_MAX_WAIT_FOR_TOPIC_SECONDS = 1.0
"""With patterns: only Spark notices a new topic that matches."""
_MAX_WAIT_FOR_TICK_SECONDS = 0.1


@attrs.frozen
class WatchedInput:
    """The input of one query in the current layout."""

    specs: QuerySpecs
    name: str

    def partitions(self) -> list[TopicPartition]:
        return self.specs.layout.input_partitions(self.name)

    def end_offsets(self) -> Offsets:
        return self.specs.end_offsets(self.name)

    @property
    def max_wait_seconds(self) -> float:
        input_ = self.specs.layout.inputs[self.name]
        if input_.ticks:
            return _MAX_WAIT_FOR_TICK_SECONDS
        return _MAX_WAIT_FOR_TOPIC_SECONDS if input_.patterns else _MAX_WAIT_SECONDS


def create_input_watch(connection: Connection, group: str, *, exactly_once: bool) -> InputWatch:
    """Return a watch of the records that Spark sees; it has no queries."""
    isolation = "read_committed" if exactly_once else "read_uncommitted"
    return InputWatch(
        lambda settings: clients.consumer(connection, group, {**settings, "isolation.level": isolation})
    )


def watch_inputs(watch: InputWatch, signals: InputSignals, specs: QuerySpecs) -> Mapping[str, InputSignal]:
    """Add the queries to `watch`; return the signals of queries that can wait."""
    found = {name: signal for name in specs.layout.queries if (signal := signals.create()) is not None}
    for name, signal in found.items():
        watch.add(name, WatchedInput(specs, name), signal)
    return found
