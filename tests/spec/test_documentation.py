"""Every YAML example in the documentation is read and compiled: a reader who copies it gets no error."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from _pytest.mark import ParameterSet

from headwater.compiler import compile_documents
from headwater.model.problems import Problem, ProblemCode, errors
from headwater.model.versions import SUPPORTED_RELEASES
from headwater.spec import load_text, parse_document
from headwater.spec.policies import load_policies_text
from tests.yaml_text import load_yaml

_ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^ *```ya?ml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_VERSIONS = _ROOT / "docs" / "versions.md"
_PAGES = sorted({_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md")} - {_VERSIONS})

_NO_DOCUMENTS = ("name: orders\nruntime: yaml\n", "config:\n  headwater:", "agent:\n")
"""Beginnings of other YAML: a Pulumi program and a stack (`pulumi/test_package`), values (`test_chart`)."""


def _blocks(*pages: Path) -> list[ParameterSet]:
    return [
        pytest.param(block, id=f"{page.relative_to(_ROOT)}-{number}")
        for page in pages
        for number, block in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8")), 1)
        if not block.startswith(_NO_DOCUMENTS)
    ]


_BLOCKS = _blocks(*_PAGES)
_DESCRIBED = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [issued])
      --> KSTREAM-AGGREGATE-0000000001
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [invoices])
      --> none
      <-- KSTREAM-SOURCE-0000000000

"""
_CONTENTS = {"describe", "exported", "observed"}
_NEED_COUNTS = {ProblemCode.MISSING_SOURCE_TOPIC, ProblemCode.UNDECIDABLE_PARTITIONS}
_SOURCES = {"stream", "table", "globalTable", "addSource", "addStateStore", "addGlobalStore"}
_KINDS: Mapping[str, list[dict[str, Any]]] = {
    "stream": [{"stream": {}}],
    "table": [{"table": {}}],
    "global table": [{"globalTable": {}}],
    "grouped stream": [{"stream": {}}, {"groupByKey": {}}],
    "grouped table": [{"table": {}}, {"groupBy": {}}],
    "windowed stream": [{"stream": {}}, {"groupByKey": {}}, {"windowedBy": {"tumbling": {"size": "1h"}}}],
    "windowed table": [
        *({"stream": {}}, {"groupByKey": {}}, {"windowedBy": {"tumbling": {"size": "1h"}}}),
        {"count": {}},
    ],
    "cogrouped stream": [{"stream": {}}, {"groupByKey": {}}, {"cogroup": {}}],
}


def test_the_documentation_has_examples() -> None:
    assert len(_BLOCKS) > 40


@pytest.mark.parametrize("block", _BLOCKS)
def test_an_example_has_no_error(block: str, tmp_path: Path) -> None:
    (tmp_path / "billing.describe.txt").write_text(_DESCRIBED)
    data = load_yaml(block)
    if isinstance(data, list):
        for step in data:
            assert any(not found for found in _in_every_context(step)), step
    elif "policies" in data:
        assert errors(load_policies_text(block, "headwater-policies.yaml").problems) == ()
    else:
        missing = "".join(
            f"{line}\n"
            for key, line in (
                ("application", "application: {id: shown}"),
                ("topology", "topology: [stream: orders]"),
            )
            if key not in data and not (key == "topology" and _CONTENTS & data.keys())
        )
        assert _errors(block + missing, str(tmp_path / "shown.yaml")) == ()


@pytest.mark.parametrize("block", _blocks(_VERSIONS))
def test_an_example_of_a_difference_has_no_error_in_some_version(block: str) -> None:
    """`oracle/test_differences` compares each with the versions before and after the change."""

    def in_version(release: str) -> str:
        data = load_yaml(block)
        data["application"]["kafkaStreams"] = release
        return yaml.safe_dump(data)

    assert any(not _errors(in_version(release), "shown.yaml") for release in SUPPORTED_RELEASES)


def _errors(text: str, file: str) -> tuple[Problem, ...]:
    loaded = load_text(text, file)
    compiled = compile_documents(loaded.documents, {})
    return _without_counts((*loaded.problems, *(problem for each in compiled for problem in each.problems)))


def _without_counts(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    return tuple(problem for problem in errors(problems) if problem.code not in _NEED_COUNTS)


def _in_every_context(step: dict[str, Any]) -> Iterator[tuple[Problem, ...]]:
    """Yield the errors of a step after each combination of results that it could refer to."""
    ((operator, options),) = step.items()
    given = options if isinstance(options, dict) else {}
    handles = [given[key] for key in ("from", "with") if key in given]
    if operator not in _SOURCES and "from" not in given:
        handles.append("result-before")
    for kinds in product(_KINDS, repeat=len(handles)):
        results = [
            each for handle, kind in zip(handles, kinds, strict=True) for each in _result(handle, kind)
        ]
        topology = [{"stream": "read-anyway"}, *_nodes_and_stores(given), *results, step]
        loaded = parse_document({"application": {"id": "shown"}, "topology": topology})
        compiled = compile_documents(loaded.documents, {})
        yield _without_counts((*loaded.problems, *(p for each in compiled for p in each.problems)))


def _result(handle: str, kind: str) -> Iterator[dict[str, Any]]:
    """Yield steps whose last one has a result of this kind, named `handle`."""
    steps = _KINDS[kind]
    for index, step in enumerate(steps):
        ((operator, options),) = step.items()
        topic = {"topic": f"topic-{handle}"} if index == 0 else {}
        name = {"as": handle} if index == len(steps) - 1 else {}
        yield {operator: {**options, **topic, **name}}


def _nodes_and_stores(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the nodes and stores that the options name."""
    stores = [store for store in given.get("stores", ()) if isinstance(store, str)]
    nodes = [*given.get("parents", ()), *given.get("processors", ()), *filter(None, [given.get("processor")])]
    yield from ({"addStateStore": {"name": store}} for store in stores)
    for node in nodes:
        yield {"addSource": {"name": f"source-of-{node}", "topic": f"topic-of-{node}"}}
        yield {"addProcessor": {"name": node, "parents": [f"source-of-{node}"]}}
