"""An input topic that gets more partitions: where its keys were, and what is committed for its partitions."""

from collections.abc import Mapping, Sequence

import attrs

from headwater.model.offset_metadata import (
    BATCH_ID,
    LINEAGE_KEY,
    OffsetMetadata,
    decode_metadata,
    decode_positions,
    decode_processor_metadata,
    decode_time,
    encode_processor_metadata,
)
from headwater.model.problems import Problem
from headwater_spark.driver.processor_move.moves import Committed, MovedPart, merged_times
from headwater_spark.driver.reshard import problems
from headwater_spark.engine.partitioners.hashing import UserPartitioner, partitions_of
from headwater_spark.engine.scaling.transfers import LeftCounts, earlier_partitions

_VERSION_STEP = 2
"""By how much the version of a state grows: a prepared batch that was not committed has the next one."""


@attrs.frozen
class InputChange:
    """An input topic of a sub-topology that gets more partitions.

    `before` is the number of tasks that have read it. `present` is its partition count on the cluster.
    `is_internal`: a repartition topic. `is_rewritten`: unprocessed records are written again; for a source
    topic only if the user requests it. `left` is set if the records are subscriptions of a foreign-key join.
    """

    topic: str
    before: int
    after: int
    present: int
    part: MovedPart
    is_internal: bool = False
    is_rewritten: bool = False
    left: LeftCounts | None = None
    partitioner: UserPartitioner | None = None

    def partitions(self, keys: Sequence[bytes], *counts: int) -> Sequence[Sequence[int]]:
        """Return the partitions of record keys for each count."""
        return partitions_of(keys, self.partitioner, *counts)

    def sources(self, partition: int) -> Sequence[int]:
        """Return the partitions in which keys of a partition may have been before."""
        if self.partitioner is not None:
            return range(self.before)
        return list(earlier_partitions(partition, self.before, self.after))

    def text(self, partition: int, committed: Mapping[int, Committed]) -> str:
        """Return the text to commit for a partition: the time of all tasks that had its keys.

        `committed` is partition → what is committed at present.
        """
        sources = self.sources(partition)
        texts = [committed[each].text for each in sources if each in committed]
        time = max(map(decode_time, texts), default=-1)
        own = [metadata for metadata in map(decode_metadata, texts) if metadata is not None]
        if own:
            times = merged_times(own, self.part)
            keeps = len(sources) == 1 and partition < self.before
            # Without a lineage, the task restores its state from the beginning.
            lineage = own[0].clocks.get(LINEAGE_KEY) if keeps else None
            clocks = {name: at for name, at in times.items() if name != BATCH_ID}
            line = {} if lineage is None else {LINEAGE_KEY: lineage}
            version = max(each.version for each in own) + _VERSION_STEP
            return OffsetMetadata(version, {**clocks, **line}).encode(time)
        theirs = [OffsetMetadata(0, decode_processor_metadata(text)) for text in texts]
        return encode_processor_metadata(time, merged_times(theirs, self.part)) if any(texts) else ""

    def problem(self, application: str, committed: Mapping[int, Committed]) -> Problem | None:
        """Return why what is committed cannot be merged, if so."""
        if any(decode_positions(each.text) for each in committed.values()):
            return problems.held_back(application, self.topic)
        emitted = {store.name for store in self.part.stores}
        for partition in range(self.after):
            sources = self.sources(partition)
            if len(sources) == 1:
                continue
            times = [decode_processor_metadata(committed[each].text) for each in sources if each in committed]
            if any(len({each.get(name) for each in times}) > 1 for name in emitted):
                return problems.different_close_times(application, self.topic)
        return None
