"""What of a batch goes beside the function that Spark keeps: only its own ends count."""

from pathlib import Path

import attrs
import pytest

from infra.compiler import build_nodes, compile_document
from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.runtime.driver.batch import decode_end_offsets, encode_end_offsets
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
def order(tmp_path: Path) -> BatchRequest:
    (document,) = load_text(_TEXT, "test.yaml").documents
    compiled = compile_document(document, {"in": 2, "out": 2})
    (program,) = build_programs(document, build_nodes(document), compiled)
    return BatchRequest(
        application="shop",
        group="shop",
        connection=Connection(bootstrap_servers=("nowhere:9092",)),
        program=program,
        state_folder=tmp_path,
        partition_counts={"in": 2},
        end_offsets=_ENDS,
    )


def test_a_batch_finds_its_own_ends(order: BatchRequest) -> None:
    lasting = attrs.evolve(order, end_offsets={})
    assert decode_end_offsets(encode_end_offsets(order, 3), lasting, "3") == _ENDS


@pytest.mark.parametrize("batch", ["4", "", None])
def test_ends_of_another_batch_do_not_count(order: BatchRequest, batch: str | None) -> None:
    assert decode_end_offsets(encode_end_offsets(order, 3), order, batch) == {}


def test_ends_of_another_application_do_not_count(order: BatchRequest) -> None:
    assert (
        decode_end_offsets(encode_end_offsets(attrs.evolve(order, application="store"), 3), order, "3") == {}
    )


def test_no_ends_are_no_error(order: BatchRequest) -> None:
    assert decode_end_offsets(None, order, "3") == {}
