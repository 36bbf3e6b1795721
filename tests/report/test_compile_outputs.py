"""The output of `headwater compile`: examples (golden files), names with special characters, many topics."""

import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs
import pytest

from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication
from headwater.report import compile_json
from headwater.report.compiled import compile_text
from headwater.report.graph import Graph, build_graph, dot_text, mermaid_text
from headwater.report.svg import svg_text
from headwater.spec import load_documents, load_text

EXAMPLES = Path(__file__).parents[2] / "topology_schemas" / "examples"
COUNTS = {"orders": 6, "customers": 6, "payments": 6, "stock": 3, "open-orders": 6}


@cache
def compiled_examples() -> tuple[CompiledApplication, ...]:
    loaded = load_documents(
        [EXAMPLES / f"{name}.yaml" for name in ("fulfilment", "order-enrichment", "revenue-by-category")]
    )
    assert not loaded.problems
    return compile_documents(loaded.documents, COUNTS)


_GOLDEN = Path(__file__).parent / "golden"
_PICTURE = Path(__file__).parents[2] / "docs" / "examples.svg"
_SVG = "{http://www.w3.org/2000/svg}"
_HOSTILE = 'a"b<script>&\\#\x1b[31m'


def _json(compiled: tuple[CompiledApplication, ...]) -> str:
    return json.dumps(compile_json(compiled), indent=2) + "\n"


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("examples.txt", compile_text),
        ("examples.json", _json),
        ("examples.dot", lambda compiled: dot_text(build_graph(compiled, COUNTS))),
        ("examples.mmd", lambda compiled: mermaid_text(build_graph(compiled, COUNTS))),
        ("examples.svg", lambda compiled: svg_text(compiled, COUNTS)),
    ],
)
def test_output(
    name: str,
    render: Callable[[tuple[CompiledApplication, ...]], str],
    golden: Callable[[Path, str], None],
) -> None:
    golden(_PICTURE if name == _PICTURE.name else _GOLDEN / name, render(compiled_examples()))


def test_unknown_counts_are_not_shown_as_zero(golden: Callable[[Path, str], None]) -> None:
    documents = load_documents(
        [EXAMPLES / "fulfilment.yaml", EXAMPLES / "revenue-by-category.yaml"]
    ).documents
    compiled = compile_documents(documents, {"stock": 3})
    golden(_GOLDEN / "unknown_counts.txt", compile_text(compiled))
    golden(_GOLDEN / "unknown_counts.mmd", mermaid_text(build_graph(compiled, {"stock": 3})))


def test_json_has_the_published_shape() -> None:
    document = compile_json(compiled_examples())
    assert document.keys() == {"applications"}
    for application in document["applications"]:
        assert application.keys() == {"applicationId", "subtopologies", "internalTopics", "problems"}
        for topic in application["internalTopics"]:
            assert topic.keys() == {"name", "kind", "partitions", "config", "subtopology"}
            assert topic["kind"] in ("repartition", "changelog", "fk-subscription")


def test_svg_shows_every_topic_with_its_count() -> None:
    root = ET.fromstring(svg_text(compiled_examples(), COUNTS))  # noqa: S314 - generated here
    titles = " ".join(title.text or "" for title in root.iter(f"{_SVG}title"))
    for application in compiled_examples():
        for topic in application.internal_topics:
            assert f"{topic.name}, {topic.partitions} partitions" in titles


def test_svg_has_no_external_resources() -> None:
    text = svg_text(compiled_examples(), COUNTS).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "://" not in text
    assert "@import" not in text
    assert "<script" not in text


@pytest.mark.parametrize("render", [dot_text, mermaid_text])
def test_names_are_escaped_in_graph_languages(render: Callable[[Graph], str]) -> None:
    text = render(build_graph(_with_source(_HOSTILE), {}))
    assert "\x1b" not in text
    assert "<script>" not in text or render is dot_text
    assert 'a"b' not in text


def test_names_are_escaped_in_svg() -> None:
    root = ET.fromstring(svg_text(_with_source(_HOSTILE), {}))  # noqa: S314 - generated here
    assert not list(root.iter(f"{_SVG}script"))


def test_names_are_escaped_on_terminals() -> None:
    assert "\x1b" not in compile_text(_with_source(_HOSTILE))


def test_a_thousand_subtopologies_are_drawn_quickly() -> None:
    steps = "\n".join(
        f"  - stream: {{topic: t{n}}}\n"
        f"  - groupBy: {{key: value.k, name: g{n}}}\n"
        f"  - count: {{materialized: c{n}}}"
        for n in range(500)
    )
    loaded = load_text(f"application: {{id: wide}}\ntopology:\n{steps}\n", "wide.yaml")
    compiled = compile_documents(loaded.documents, {f"t{n}": 4 for n in range(500)})
    assert len(compiled[0].subtopologies) == 1000
    start = time.process_time()
    text = svg_text(compiled, {})
    assert time.process_time() - start < 2
    assert len(text) < 3_000_000


def _with_source(name: str) -> tuple[CompiledApplication, ...]:
    (first, *_) = compiled_examples()
    part = attrs.evolve(first.subtopologies[0], sources=(name,), sinks=(name,), nodes=(name,), stores=(name,))
    return (attrs.evolve(first, subtopologies=(part,)),)


def test_a_sub_topology_that_spark_sql_evaluates_says_so() -> None:
    text = "application: {id: copy}\ntopology:\n  - stream: {topic: orders}\n  - to: {topic: out}\n"
    compiled = compile_documents(load_text(text, "copy.yaml").documents, {"orders": 2})
    assert "sub-topology 0  2 tasks, in Spark SQL with headwater run\n" in compile_text(compiled)
