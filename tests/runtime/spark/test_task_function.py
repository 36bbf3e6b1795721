"""The end offsets that are passed to the workers: only those of the same batch are used."""

from pathlib import Path

import attrs
import pytest

from infra.compiler import build_nodes, compile_document
from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.runtime.driver.queries.task_function import decode_end_offsets, encode_end_offsets
from spark_jobs.runtime.engine.program import build_programs
from spark_jobs.runtime.worker.messages import BatchRequest

_TEXT = """
application: {id: shop}
topology:
  - stream: {topic: in, serdes: {key: string, value: string}}
  - to: {topic: out}
"""
_ENDS = {("in", 0): 7, ("in", 1): 0}


@pytest.fixture
def batch_request(tmp_path: Path) -> BatchRequest:
    (document,) = load_text(_TEXT, "test.yaml").documents
    compiled = compile_document(document, {"in": 2, "out": 2})
    (program,) = build_programs(document, build_nodes(document), compiled)
    return BatchRequest(
        application="shop",
        group="shop",
        connection=Connection(bootstrap_servers=("unused:9092",)),
        program=program,
        state_folder=tmp_path,
        partition_counts={"in": 2},
        end_offsets=_ENDS,
    )


def test_batch_decodes_its_own_end_offsets(batch_request: BatchRequest) -> None:
    constant = attrs.evolve(batch_request, end_offsets={})
    assert decode_end_offsets(encode_end_offsets(batch_request, 3), constant, "3") == _ENDS


@pytest.mark.parametrize("batch", ["4", "", None])
def test_end_offsets_of_another_batch_are_ignored(batch_request: BatchRequest, batch: str | None) -> None:
    assert decode_end_offsets(encode_end_offsets(batch_request, 3), batch_request, batch) == {}


def test_end_offsets_of_another_application_are_ignored(batch_request: BatchRequest) -> None:
    assert (
        decode_end_offsets(
            encode_end_offsets(attrs.evolve(batch_request, application="store"), 3), batch_request, "3"
        )
        == {}
    )


def test_missing_end_offsets_are_no_error(batch_request: BatchRequest) -> None:
    assert decode_end_offsets(None, batch_request, "3") == {}
