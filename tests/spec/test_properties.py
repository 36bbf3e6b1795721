"""Properties of every input: nothing raises, and each document that the schema allows is read."""

import json
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from headwater.spec import load_text
from headwater.spec.build_document import build_document
from headwater.spec.locations import NO_POSITION, RawDocument
from headwater.spec.schema import document_schema
from headwater.spec.schema_problems import schema_problems
from tests.spec.generated import damaged, documents, scalars, texts

PUBLISHED = Draft202012Validator(document_schema())
_YAML_CHARACTERS = st.text(alphabet="ab:-?[]{},&*!|>'\"%@`# \n\t\\~0123.\ufeff\u2028é😀", max_size=80)


@given(st.text(max_size=200) | _YAML_CHARACTERS)
@settings(max_examples=2 * settings().max_examples)
def test_any_text_yields_problems_and_no_exception(text: str) -> None:
    for file in ("any.yaml", "any.json"):
        loaded = load_text(text, file)
        assert loaded.problems
        assert loaded.documents == ()


@given(_YAML_CHARACTERS)
def test_any_text_in_a_document_yields_no_exception(text: str) -> None:
    loaded = load_text(
        f"application: {{id: shop}}\ntopology:\n  - stream: {{topic: a}}\n  - filter: {text}\n", "a.yaml"
    )
    assert loaded.problems or len(loaded.documents) == 1


@given(damaged() | st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))
def test_problems_are_reported_exactly_if_the_schema_is_violated(data: Any) -> None:  # noqa: ANN401 - any value
    found = schema_problems(RawDocument("any.yaml", data, NO_POSITION))

    assert bool(found) is not PUBLISHED.is_valid(data)
    assert all(problem.summary and problem.expected and problem.found and problem.fix for problem in found)


@given(documents())
def test_documents_that_the_schema_allows_are_built(data: dict[str, Any]) -> None:
    if PUBLISHED.is_valid(data):
        raw = RawDocument("any.yaml", data, NO_POSITION)
        document, problems = build_document(raw)
        assert document is not None or problems


@given(documents())
def test_yaml_and_json_yield_the_same_document(data: dict[str, Any]) -> None:
    as_json = load_text(json.dumps(data), "a.json")
    as_yaml = load_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), "a.yaml")

    def facts(loaded: Any) -> list[str]:  # noqa: ANN401 - two results of load_text
        return sorted(
            f"{problem.summary} {problem.fix}" for problem in loaded.problems if "line" not in problem.found
        )

    assert facts(as_json) == facts(as_yaml)
    assert [document.application.id for document in as_json.documents] == [
        document.application.id for document in as_yaml.documents
    ]


@given(documents())
def test_loading_is_deterministic(data: dict[str, Any]) -> None:
    text = json.dumps(data)
    assert load_text(text, "a.json") == load_text(text, "a.json")
