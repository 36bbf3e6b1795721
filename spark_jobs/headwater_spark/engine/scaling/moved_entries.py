"""Delete the entries of keys that have moved to other processors, some with each batch (KIP-287)."""

from collections.abc import Sequence
from itertools import islice

from headwater.model.behaviors import RunProcessor, TableTransformValues
from headwater.model.nodes import ProcessorNode, StateStore
from headwater_spark.engine.program_interface import Program
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.task_state import TaskState

_KEYS_AT_ONCE = 10_000
"""So many keys are in memory, also if all entries of a store are checked by one batch."""
_READ_BY_KEY = frozenset({"keyValue", "timestampedKeyValue"})


def can_delete_later(program: Program) -> bool:
    """Return whether entries of keys that a task does not read any more have no effect on its results.

    So it is if all stores are read by the keys of records only. Windows that are closed, suppressed results,
    records without a partner and the stores of users' processors are found by reading ranges.
    """
    users = {
        store
        for node in program.nodes
        if isinstance(node, ProcessorNode) and isinstance(node.behavior, RunProcessor | TableTransformValues)
        for store in node.stores
    }
    return all(
        _is_read_by_key(store) and store.name not in users for store in program.stores if not store.is_global
    )


class MovedEntries:
    """The entries of one task whose keys belong to other processors.

    Args:
        stores: Those of the sub-topology, all of which can delete later.
        state: The local state of the task.
        processor: The number of the task.
        processors: The present ones.
    """

    def __init__(
        self, stores: Sequence[MovedStore], state: TaskState, processor: int, processors: Processors
    ) -> None:
        self._left = list(stores)
        self._start = b""
        self._state = state
        self._processor = processor
        self._processors = processors

    @property
    def are_deleted(self) -> bool:
        return not self._left

    def delete(self, most: int, wall_clock_ms: int) -> list[OutputRecord]:
        """Delete those among the next `most` entries in the running batch; return their changelog records."""
        tombstones: list[OutputRecord] = []
        while self._left and most > 0:
            store = self._left[0]
            entries = self._state.store(store.name)
            size = min(most, _KEYS_AT_ONCE)
            keys = [key for key, _ in islice(entries.range(self._start), size)]
            for key in keys:
                if store.processor(key, self._processors) != self._processor:
                    entries.delete(key)
                    tombstones.append((store.changelog, self._processor, key, None, wall_clock_ms, ()))
            if len(keys) < size:
                self._left.pop(0)
                self._start = b""
            else:
                self._start = keys[-1] + b"\0"
            most -= len(keys)
        return tombstones


def _is_read_by_key(store: StateStore) -> bool:
    keeps = store.keeps
    if keeps is None or keeps.kind not in _READ_BY_KEY:
        return False
    return keeps.format.key is None or keeps.format.key.window is None
