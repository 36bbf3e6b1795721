"""Classes of a user's application: a static partitioner and a processor with a store."""

import os
from pathlib import Path

from headwater_spark.processors import Processor, ProcessorContext, Record


def partition_of(key: str) -> int:
    """Return the permanent partition of a key: `t3:ann` is on partition 3."""
    return int(key.partition(":")[0].removeprefix("t"))


class ByTenant:
    """Returns the partition of the tenant; appends each expansion to the file named by EXPANSIONS_FILE."""

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:  # noqa: ARG002
        return partition_of(str(key))

    def on_partition_expansion(self, old: int, new: int) -> None:
        with Path(os.environ["EXPANSIONS_FILE"]).open("a") as file:
            file.write(f"{old} {new}\n")


class Sums(Processor):
    """Adds up the numbers of each key; the result names the partition of the task."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._sums = context.state_store("sums")

    def process(self, record: Record) -> None:
        total = (self._sums.get(record.key) or 0) + int(record.value)
        self._sums.put(record.key, total)
        partition = self._context.task_id.partition("_")[2]
        self._context.forward(record.with_value(f"{total} on {partition}"))
