"""What a user's application brings along: a static partitioner and a processor with a store."""

import os
from pathlib import Path

from spark_jobs.processors import Processor, ProcessorContext, Record


def home(key: str) -> int:
    """Return the partition of a key for good: `t3:ann` lives on 3."""
    return int(key.partition(":")[0].removeprefix("t"))


class ByTenant:
    """`tests.runtime.spark.tenants:ByTenant`: writes what it hears to the file that HEARD_FILE names."""

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:  # noqa: ARG002
        return home(str(key))

    def on_partition_expansion(self, old: int, new: int) -> None:
        with Path(os.environ["HEARD_FILE"]).open("a") as file:
            file.write(f"{old} {new}\n")


class Sums(Processor):
    """Adds up the numbers of a key, and tells which partition's task does."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._sums = context.state_store("sums")

    def process(self, record: Record) -> None:
        total = (self._sums.get(record.key) or 0) + int(record.value)
        self._sums.put(record.key, total)
        partition = self._context.task_id.partition("_")[2]
        self._context.forward(record.with_value(f"{total} on {partition}"))
