"""Properties of every input: nothing raises, and each document that the schema allows is read."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from headwater.model.problems import Severity
from headwater.spec import load_text
from headwater.spec.build_document import build_document
from headwater.spec.locations import NO_POSITION, RawDocument
from headwater.spec.scalars import milliseconds, plain_scalar, read_duration
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


@given(
    st.integers(0, 10**9),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 999),
)
def test_the_units_of_a_duration_are_added(
    days: int, hours: int, minutes: int, seconds: int, millis: int
) -> None:
    expected = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + millis

    assert milliseconds(f"{days}d{hours}h{minutes}m{seconds}s{millis}ms") == expected
    assert milliseconds(f"P{days}DT{hours}H{minutes}M{seconds}.{millis:03}S") == expected
    assert milliseconds(f"-{expected}ms") == -expected


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none())
def test_plain_scalars_are_read_as_in_json(value: float | bool | None) -> None:  # noqa: FBT001 - a scalar
    assert plain_scalar(json.dumps(value)) == value


def test_the_largest_duration_fits_a_java_long() -> None:
    largest = "999999999d999999999h999999999m999999999s999999999999999999ms"
    assert milliseconds(largest) < 2**63
    text = f"application: {{id: a, setup: {{timeout: {largest}}}}}\ntopology: [{{stream: {{topic: a}}}}]"
    assert not [problem for problem in load_text(text, "a").problems if problem.severity is Severity.ERROR]


@pytest.mark.parametrize(
    "value",
    ["1.5h", "5 minutes", "", "-5s", "s", "PT", "P", "PT5", "5s5m", None, True, -1, 1.5, [5], "5s\n5s"],
)
def test_an_invalid_duration_is_none(value: object) -> None:
    assert read_duration(value) is None


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), ("0s", 0), ("1h30m", 5_400_000), ("PT0.5S", 500), ("P1D", 86_400_000)]
)
def test_durations_are_read_from_numbers_and_texts(value: object, expected: int) -> None:
    assert read_duration(value) == expected
