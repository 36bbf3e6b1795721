"""Programs of documents for one partition, and a replay of them that also processes many records at once."""

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.compiler import build_nodes
from headwater.model.topology import TopologyDocument
from headwater_spark.engine.program import SubtopologyProgram, problems_of
from headwater_spark.engine.program.settings import without_cache
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.serdes import SchemaOf, no_registry
from headwater_spark.worker import replay
from headwater_spark.worker.replay import open_tasks, programs_of_one_partition
from tests.runtime.partition_columns import columns_of

__all__ = ["UNCACHED", "Replay", "open_tasks", "runnable_programs"]

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
    return programs_of_one_partition(
        document, nodes, settings=settings, topics=topics, schemas=schemas, schema_of=schema_of
    )


class Replay(replay.Replay):
    """A replay that also processes many records at once."""

    def pipe_together(self, records: Iterable[OutputRecord]) -> list[OutputRecord]:
        """Process many records: a batch of a sub-topology has all records that wait for it."""
        for record in records:
            self._put(record)
        written: list[OutputRecord] = []
        while self._waiting:
            batches: dict[str, list[Any]] = {}
            while self._waiting:
                topic = self._waiting.poll()
                batch = batches.setdefault(self._reader(topic), [])
                batch += [self._input(record) for record in self._queues.pop(topic)]
            for name, batch in batches.items():
                written += self._written(name, list(self._process_columns(name, batch)))
        return written

    def _process_columns(self, name: str, records: list[Any]) -> Iterable[OutputRecord]:
        outputs, _ = self.tasks[name].process_partitions(columns_of(records), (), 0)
        return outputs
