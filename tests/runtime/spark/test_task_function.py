"""What is passed to the workers with each batch: only what belongs to the same batch is used."""

from pathlib import Path

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.kafka import Connection
from headwater.model.offset_metadata import StateVersion
from headwater.spec import load_text
from headwater_spark.driver.queries.task_function import (
    Known,
    KnownVersions,
    decode_end_offsets,
    decode_result,
    decode_versions,
    encode_end_offsets,
    encode_results,
    encode_versions,
    result_rows,
)
from headwater_spark.engine.program import build_programs
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.state_proof import boot_seconds

_TEXT = """
application: {id: shop}
topology:
  - stream: {topic: in, serdes: {key: string, value: string}}
  - to: {topic: out}
"""
_ENDS = {("in", 0): 7, ("in", 1): 0}
_SECONDS = 60.0
"""No step of a test takes so long."""


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


def test_batch_decodes_its_own_versions(batch_request: BatchRequest) -> None:
    versions = {0: StateVersion(3, 2**62), 7: StateVersion(1)}
    request = attrs.evolve(batch_request, versions=versions, client_at=boot_seconds() - 5)
    text = encode_versions(request, 3, 12.5)
    known = decode_versions(text, batch_request, "3")
    assert (known.at, known.versions) == (12.5, versions)
    assert 5 <= known.client_age < 5 + _SECONDS
    for batch in ("4", "", None):
        assert decode_versions(text, batch_request, batch) == Known()
    assert decode_versions(text, attrs.evolve(batch_request, application="store"), "3") == Known()
    assert decode_versions(None, batch_request, "3") == Known()


def test_versions_are_known_when_all_results_have_arrived() -> None:
    first, second = StateVersion(1, 10), StateVersion(2, 20)
    versions = KnownVersions()
    assert versions.begin_batch() == {}
    versions.end_batch({}, [_result(0, first), _result(1, first)])
    known = versions.begin_batch()
    assert known == {0: first, 1: first}
    assert versions.begin_batch() == {}, "the batch has failed: some of its tasks may have committed"
    versions.end_batch(known, [_result(1, second)])
    known = versions.begin_batch()
    assert known == {0: first, 1: second}
    versions.end_batch(known, [_result(0, None)])
    known = versions.begin_batch()
    assert known == {1: second}
    versions.end_batch(known, [])
    versions.forget()
    assert versions.begin_batch() == {}


def test_the_version_of_a_result_arrives_at_the_driver() -> None:
    for version in (StateVersion(3, 2**62 + 1), StateVersion(), None):
        (line,) = encode_results([_result(0, version)]).column("result").to_pylist()
        assert decode_result(line).state_version == version


def _result(task: int, version: StateVersion | None) -> BatchResult:
    return BatchResult(partition=task, state_version=version)


def test_rows_of_results_are_texts() -> None:
    texts = ["", "a", '{"name": "Zürich"}', "a"]
    assert result_rows(texts) == pa.RecordBatch.from_pydict({"result": texts})
    assert result_rows([]).num_rows == 0
