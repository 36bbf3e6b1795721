"""Results of Spark tasks as rows with one text, and back."""

import json
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

import attrs
import pyarrow as pa  # type: ignore[import-untyped]

from headwater.model.offset_metadata import StateVersion
from headwater_spark.worker.messages import BatchResult

RESULT_SCHEMA = "result string"


def encode_results(results: Iterable[BatchResult]) -> pa.RecordBatch:
    """Return a row of `RESULT_SCHEMA` for each result."""
    return result_rows([json.dumps(attrs.asdict(result)) for result in results])


def decode_result(line: str) -> BatchResult:
    """Return the result of a row."""
    fields = json.loads(line)
    missing, held_back = fields.pop("missing_partition"), fields.pop("held_back")
    version = fields.pop("state_version")
    return BatchResult(
        **fields,
        missing_partition=tuple(missing) if missing else None,
        held_back=tuple(map(tuple, held_back)),
        state_version=StateVersion(**version) if version else None,
    )


def result_rows(results: Sequence[str]) -> pa.RecordBatch:
    """Return a row for each result. `pyarrow.array` would import pandas, for half a second in each worker."""
    texts = [result.encode() for result in results]
    ends = array("i", accumulate(map(len, texts), initial=0))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    column = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    return pa.RecordBatch.from_arrays([column], names=["result"])
