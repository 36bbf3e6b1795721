"""The published schema of policies: valid, documented, and supported completely by the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from headwater.spec import schema_problems
from headwater.spec.policies import _RULES, load_policies_text
from headwater.spec.schema import Schema, document_schema, published_schema
from tests.spec.test_schema import ANNOTATIONS, APPLICATORS, is_condition, schemas

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/policies.md"
SCHEMA = published_schema("policies.v1")
PARTS = list(schemas(SCHEMA))


def resolved(part: Schema) -> Schema:
    while "$ref" in part:
        name = part["$ref"].removeprefix("#/$defs/")
        part = {**SCHEMA["$defs"][name], **{key: value for key, value in part.items() if key != "$ref"}}
    return part


DOCUMENTED = [(path, resolved(part)) for path, part in PARTS if not is_condition(path)]


def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_each_part_has_a_description_and_examples() -> None:
    assert [path for path, part in DOCUMENTED if not part.get("description", "").endswith(".")] == []
    assert [path for path, part in DOCUMENTED if not part.get("examples")] == []
    assert [name for name, part in SCHEMA["$defs"].items() if not part.get("title")] == []


def test_each_example_and_default_is_valid() -> None:
    for path, part in DOCUMENTED:
        validator = Draft202012Validator({**part, "$defs": SCHEMA["$defs"]})
        for example in [*part["examples"], *([part["default"]] if "default" in part else [])]:
            assert validator.is_valid(example), (path, example)


def test_each_mapping_declares_additional_properties() -> None:
    for path, part in DOCUMENTED:
        types = part.get("type", ())
        if "object" in ([types] if isinstance(types, str) else types):
            assert "additionalProperties" in part, path


def test_each_keyword_has_a_problem_text() -> None:
    used = {keyword for _, part in PARTS for keyword in part}
    assert used <= {"$ref", *schema_problems._MISTAKES} | APPLICATORS | ANNOTATIONS


def test_durations_have_the_schema_of_documents() -> None:
    assert SCHEMA["$defs"]["duration"] == document_schema()["$defs"]["duration"]


def test_the_code_has_each_rule() -> None:
    assert set(_RULES) == set(SCHEMA["$defs"]["policy"]["properties"])


@pytest.mark.parametrize("rule", _RULES)
def test_the_examples_of_each_rule_are_read(rule: str) -> None:
    for example in SCHEMA["$defs"][rule]["examples"]:
        loaded = load_policies_text(yaml.safe_dump({"policies": [{rule: example}]}), "policies.yaml")
        assert loaded.problems == ()
        assert [policy.key for policy in loaded.policies] == [rule]


def snippets() -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)


@pytest.mark.parametrize("snippet", snippets())
def test_the_snippets_of_the_guide_are_valid(snippet: str) -> None:
    loaded = load_policies_text(snippet, "policies.yaml")
    assert loaded.problems == ()


def test_the_guide_explains_each_rule_and_each_option() -> None:
    text = GUIDE.read_text()
    rules: dict[str, Any] = SCHEMA["$defs"]["policy"]["properties"]
    for rule in rules:
        assert f"| `{rule}` |" in text, rule
        for option in resolved(rules[rule])["properties"]:
            assert f"`{option}`" in text, option


def test_the_guide_says_how_to_write_the_schema_that_it_names() -> None:
    (path,) = re.findall(r"\$schema=(\S+)", GUIDE.read_text())
    assert f"`headwater schema policies -o {path}`" in GUIDE.read_text()
