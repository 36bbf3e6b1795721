"""The processors of many entries of a changelog topic at once (KIP-287)."""

from collections.abc import Sequence

import numpy as np

from headwater_spark.engine.partitioners.murmur2_arrays import positive_hashes
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.processors import Processors

NO_OWNER = -1


def entry_owners(
    store: MovedStore, entry_keys: Sequence[bytes | None], *numbers: Processors
) -> Sequence[Sequence[int]]:
    """Return the processors of the entries for each of `numbers`: what `MovedStore.processor` returns.

    A record without key is no entry: its processor is `NO_OWNER`.
    """
    hashes = positive_hashes([b"" if key is None else store.record_key(key) for key in entry_keys])
    is_entry = np.array([key is not None for key in entry_keys])
    tables = (np.array(processors.owner_table) for processors in numbers)
    return [np.where(is_entry, table[hashes % len(table)], NO_OWNER).tolist() for table in tables]
