"""The fix for a missing protoc is followed: it installs the module that is missing, and the document runs."""

import json
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.worker import schema_registry
from headwater_spark.worker.protobuf_schemas import compile_schema
from tests.advice.fix_texts import ROOT

_PROTO = 'syntax = "proto3"; message NotCompiledBefore { string text = 1; }'
_MODULE = "grpc_tools"


class _Registry:
    """A registry that has one schema, as an answer of `GET /subjects/…/versions/latest`."""

    def latest(self, _subject: str, type_: str) -> str:
        found = {"id": 1, "schema": _PROTO, "schemaType": "PROTOBUF"}
        return json.dumps({"id": 1, "schema": schema_registry._schema_text(found, (type_,))})


@pytest.mark.parametrize("format_", ["protobuf:note.proto", "protobuf-registry:notes-value"])
def test_a_document_runs_after_protoc_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    (tmp_path / "note.proto").write_text(_PROTO)
    monkeypatch.setattr("headwater_spark.driver.preflight.configured_registry", lambda _config: _Registry())
    compile_schema.cache_clear()
    steps = [{"stream": {"topic": "notes", "serdes": {"value": format_}}}, {"to": "copies"}]
    text = json.dumps({"application": {"id": "shop"}, "topology": steps})
    document = load_text(text, "shop.json").documents[0]
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, _MODULE, None)
        with pytest.raises(ProblemsError) as refused:
            check_runnable(document, tmp_path)
    (problem,) = refused.value.problems
    assert problem.code is ProblemCode.NOT_RUNNABLE
    assert problem.application == "shop"
    assert "protoc is not installed" in (problem.found or "")
    assert "pip install 'headwater[protobuf] @ URL_OF_THE_WHEEL'" in problem.fix

    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    installed = {Requirement(each).name for each in extras["protobuf"]}
    assert installed & set(packages_distributions()[_MODULE])
    assert check_runnable(document, tmp_path).schemas
