"""The processors of many entries of a changelog topic at once (KIP-287)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
    return [owners.tolist() for owners in entry_owner_arrays(store, entry_keys, *numbers)]


def entry_owner_arrays(
    store: MovedStore, entry_keys: Sequence[bytes | None], *numbers: Processors
) -> Sequence[NDArray[np.int64]]:
    """Return the same as `entry_owners`, as arrays."""
    if None in entry_keys:
        hashes = positive_hashes([b"" if key is None else store.record_key(key) for key in entry_keys])
    else:
        hashes = positive_hashes(store.record_keys(entry_keys))  # type: ignore[arg-type]  # no key is None
    found = [table[hashes % len(table)] for table in (np.array(each.owner_table) for each in numbers)]
    if None in entry_keys:
        is_entry = np.array([key is not None for key in entry_keys])
        return [np.where(is_entry, owners, NO_OWNER) for owners in found]
    return found
