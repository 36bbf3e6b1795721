"""A column of keys or values in Arrow's format, which becomes Python objects when they are needed."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from headwater_spark.engine.key_counts import NULL_KEY
from headwater_spark.engine.partition_columns import NumberedBytes
from headwater_spark.engine.window_columns import Numbers


class ArrowBytes:
    """A `ByteColumn` of Arrow arrays. It releases them once they are numbers or Python objects."""

    def __init__(self, arrays: Sequence[pa.BinaryArray]) -> None:
        self._arrays = list(arrays)
        self._length = sum(map(len, arrays))
        self._numbered: NumberedBytes | None = None
        self._list: Sequence[bytes | None] | None = None

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: int) -> bytes | None:
        if self._list is not None:
            return self._list[at]
        if self._numbered is not None:
            return self._numbered.value(at)
        (value,) = self.take(np.array([at]))
        return value

    def to_list(self) -> Sequence[bytes | None]:
        if self._list is None:
            if self._numbered is not None:
                self._list = self._numbered.to_list()
            else:
                values: list[bytes | None] = []
                self._arrays.reverse()
                while self._arrays:
                    values.extend(self._arrays.pop().to_pylist())
                self._list = values
        return self._list

    def take(self, positions: Numbers) -> Sequence[bytes | None]:
        if self._list is not None:
            return [self._list[at] for at in positions.tolist()]
        if self._numbered is not None:
            return self._numbered.take(positions)
        return [value for array in self._taken(positions) for value in array.to_pylist()]

    def number_values(self) -> NumberedBytes:
        if self._numbered is None:
            # Arrays of a batch are Python objects if an attempt has failed: then they are read again.
            arrays = self._arrays if self._list is None else [pa.array(self._list, pa.binary())]
            kind = arrays[0].type if arrays else pa.binary()  # with settings of Spark, `large_binary`
            encoded = pa.chunked_array(arrays, kind).dictionary_encode().combine_chunks()
            codes = encoded.indices.fill_null(NULL_KEY).to_numpy(zero_copy_only=False).astype(np.int64)
            self._numbered = NumberedBytes(codes, encoded.dictionary.to_pylist())
            self._arrays.clear()
        return self._numbered

    def lengths(self) -> Numbers:
        if self._list is not None:
            return _lengths(self._list)
        if self._numbered is not None:
            found: Numbers = np.append(_lengths(self._numbered.different), 0)[self._numbered.codes]
            return found
        lengths = (pc.fill_null(pc.binary_length(array), 0).to_numpy() for array in self._arrays)
        return np.concatenate([np.empty(0, np.int64), *lengths]).astype(np.int64)

    def first_rows(self, number: int) -> "ArrowBytes":
        if self._list is not None or self._numbered is not None:
            return ArrowBytes([pa.array(self.to_list()[:number], pa.binary())])
        return ArrowBytes(list(self._first(number)))

    def _first(self, number: int) -> Iterator[pa.BinaryArray]:
        for array in self._arrays:
            if number <= 0:
                return
            yield array[:number]
            number -= len(array)

    def _taken(self, positions: Numbers) -> Iterator[pa.BinaryArray]:
        """Yield some values of each array. Arrow would copy all arrays into one before."""
        ends = np.cumsum([len(array) for array in self._arrays])
        first = 0
        for array, end, last in zip(self._arrays, ends, np.searchsorted(positions, ends), strict=True):
            if first < last:
                yield array.take(pa.array(positions[first:last] - (end - len(array))))
            first = last


def _lengths(values: Sequence[bytes | None]) -> Numbers:
    return np.array([0 if value is None else len(value) for value in values], np.int64)
