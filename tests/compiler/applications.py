"""Compiled applications, written as documents."""

from collections.abc import Mapping
from textwrap import dedent

from headwater.compiler import compile_document
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text

_LINTS = {
    ProblemCode.NULL_KEYS_DROPPED,
    ProblemCode.RENUMBERING_HAZARD,
    ProblemCode.COGROUP_COPARTITIONS_SOURCES,
}


def document(text: str) -> TopologyDocument:
    """Return the document of `text`; the default application id is `app`."""
    text = dedent(text)
    loaded = load_text(text if "application:" in text else "application: {id: app}\n" + text, "app.yaml")
    assert not loaded.problems, loaded.problems
    return loaded.documents[0]


def compiled(text: str, partitions: Mapping[str, int] | None = None) -> CompiledApplication:
    return compile_document(document(text), partitions or {})


def counts(application: CompiledApplication) -> dict[str, int]:
    """Return internal topic without the application id → count."""
    prefix = f"{application.application.id}-"
    return {topic.name.removeprefix(prefix): topic.partitions for topic in application.internal_topics}


def topic(application: CompiledApplication, name: str) -> InternalTopic:
    return next(t for t in application.internal_topics if t.name == f"{application.application.id}-{name}")


def problems_without_lints(application: CompiledApplication) -> tuple[Problem, ...]:
    """Return the problems without the lints of the DSL, which have their own tests."""
    return tuple(problem for problem in application.problems if problem.code not in _LINTS)


def codes(problems: tuple[Problem, ...]) -> list[ProblemCode]:
    return [problem.code for problem in problems]


def windowed_count(window: str, materialized: str = "counts", config: str = "") -> str:
    """Return the text of a document."""
    return f"""
    application: {{id: app, config: {{{config}}}}}
    topology:
      - stream: {{topic: in}}
      - groupByKey: {{}}
      - windowedBy: {{{window}}}
      - count: {{materialized: {materialized}}}
    """
