"""Programs of documents for one partition, and a runner that also processes many records at once."""

from collections.abc import Iterable, Mapping

from headwater.compiler import build_nodes
from headwater.model.topology import TopologyDocument
from headwater_spark.engine.program import SubtopologyProgram, problems_of
from headwater_spark.engine.program.settings import without_cache
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import InputRecord, OutputRecord
from headwater_spark.engine.serdes import SchemaOf, no_registry
from headwater_spark.testing.single_partition import (
    SinglePartitionRunner,
    build_single_partition_programs,
    open_tasks,
)
from tests.runtime.partition_columns import columns_of

__all__ = ["UNCACHED", "BatchReplay", "open_tasks", "runnable_programs"]

UNCACHED = without_cache(EngineSettings())


def runnable_programs(
    document: TopologyDocument,
    topics: Iterable[str],
    settings: EngineSettings = UNCACHED,
    schemas: Mapping[str, str] | None = None,
    schema_of: SchemaOf = no_registry,
) -> tuple[SubtopologyProgram, ...]:
    """Return programs for one partition; `topics` are users' topics, for patterns."""
    nodes = build_nodes(document)
    problems = problems_of(document, nodes, schemas)
    assert not problems, problems
    return build_single_partition_programs(
        document, nodes, settings=settings, topics=topics, schemas=schemas, schema_of=schema_of
    )


class BatchReplay(SinglePartitionRunner):
    """Also processes many records at once, and keeps the records that the tasks write."""

    def __init__(self, programs: Iterable[SubtopologyProgram]) -> None:
        super().__init__(programs)
        self.written: list[OutputRecord] = []

    def reopen(self) -> None:
        """Create new tasks on the same states, as when they move to another worker."""
        self.tasks = open_tasks(self.programs, self._states)

    def pipe_together(self, records: Iterable[OutputRecord]) -> list[OutputRecord]:
        """Process many records: a batch of a sub-topology has all records that are queued for it."""
        for record in records:
            self._enqueue(record)
        written: list[OutputRecord] = []
        while batches := self._dequeue_batches():
            for name, batch in batches.items():
                outputs = list(self.tasks[name].process_partitions(columns_of(batch), (), 0)[0])
                self._commit(name, outputs)
                written += outputs
        return written

    def _dequeue_batches(self) -> dict[str, list[InputRecord]]:
        batches: dict[str, list[InputRecord]] = {}
        for name, record in self._dequeue():
            batches.setdefault(name, []).append(record)
        return batches

    def _commit(self, name: str, outputs: list[OutputRecord]) -> None:
        super()._commit(name, outputs)
        self.written += outputs
