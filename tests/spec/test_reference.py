"""docs/documents.md matches the code: its reference, its links, its snippets and its limits."""

import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.compiler.configs.table import find_any_config
from headwater.compiler.configs.values import allowed_values
from headwater.model.problems import Severity
from headwater.model.versions import DEFAULT_VERSION
from headwater.spec import load_text
from headwater.spec.locations import MAX_BYTES, MAX_DEPTH, MAX_NODES
from headwater.spec.phrases import quote_words, type_names, yaml_literal
from headwater.spec.schema import Schema, document_schema, operator_names, resolve_reference

GROUPS = {
    "Sources": "stream table globalTable",
    "One record at a time": "filter filterNot map mapValues flatMap flatMapValues selectKey "
    "peek foreach print",
    "Branching, merging, writing": "split merge repartition to",
    "Grouping and aggregating": "groupByKey groupBy windowedBy count reduce aggregate cogroup suppress",
    "Joins": "join leftJoin outerJoin",
    "Between streams and tables": "toTable toStream",
    "Processors and stores": "process processValues transformValues addStateStore addGlobalStore",
    "Processor API": "addSource addProcessor addSink connectProcessorAndStateStores addReadOnlyStateStore",
}
_SHARED = (
    "duration", "signedDuration", "joinWindow", "materialized", "storeBuilder", "storeSupplier",
    "joinStoreSupplier", "logging", "caching", "serdes", "expression", "handle", "name",
    "topicName", "topicNames", "principal", "applicationId", "offsetReset", "partitioner", "pythonClass",
    "configValue", "internalTopicConfigValue", "topicConfig",
)  # fmt: skip
_EXPORTED = ("exportedApplication", "exportedSubtopology", "exportedNode", "exportedStore")
_LINKED = {*_SHARED, *_EXPORTED, "config", "setup", "describe", "exported", "observed", "application", "acls"}
_NAME_OR_BUILDER = "storeOrName"
_CONFIG_VALUE = ["string", "number", "boolean"]
_WIDTH = 120


def reference() -> str:
    """Return the reference as Markdown, section by section."""
    return "\n".join(_reference_lines()) + "\n"


def _reference_lines() -> Iterator[str]:
    schema = document_schema()
    definitions = schema["$defs"]
    yield from _section_lines("## The document", schema)
    for name, heading in _PARTS.items():
        yield from _section_lines(heading, definitions[name])
    yield from ("## Operators", "", f"All {len(operator_names())} of them, by purpose.", "")
    for group, names in GROUPS.items():
        yield from (f"### {group}", "")
        for name in names.split():
            yield from _section_lines(f"#### {name}", definitions[f"op.{name}"], name)
    yield from ("## Shared by several", "")
    for name in _SHARED:
        yield from _section_lines(f"### {name}", definitions[name])


_PARTS = {
    "application": "## application",
    "config": "### config",
    "setup": "### setup",
    "sink": "## topics",
    "acls": "## acls",
    "describe": "## describe",
    "exported": "## exported",
    **{name: f"### {name}" for name in _EXPORTED},
    "observed": "## observed",
    "observedTopic": "### observedTopic",
}


def _section_lines(heading: str, schema: Schema, operator: str | None = None) -> Iterator[str]:
    title = schema.get("title", "")
    yield from (heading, "")
    yield _wrap_text((f"**{title}.** " if operator and title != operator else "") + schema["description"])
    yield ""
    yield from _option_lines(schema)
    if operator is not None:
        yield "```yaml"
        yield from (f"- {operator}: {yaml_literal(example)}" for example in schema["examples"])
        yield from ("```", "")


def _option_lines(schema: Schema) -> Iterator[str]:
    if not schema.get("properties"):
        return
    required = set(schema.get("required", ()))
    for name, part in schema["properties"].items():
        known = resolve_reference(part)
        yield _option_line(name, part, is_required=name in required)
        if "properties" in known and "$ref" not in part:
            yield from _inner_options(name, known)
        if known.get("type") == "array" and "$ref" not in part:
            yield from _inner_options(
                f"{name}[]", resolve_reference(known["items"]) if "$ref" not in known["items"] else {}
            )
    yield ""


def _inner_options(name: str, schema: Schema) -> Iterator[str]:
    """Return the options of a mapping without its own section."""
    required = set(schema.get("required", ()))
    for inner, part in schema.get("properties", {}).items():
        yield _option_line(f"{name}.{inner}", part, is_required=inner in required)


def _option_line(name: str, part: Schema, *, is_required: bool) -> str:
    mark = " (required)" if is_required else ""
    return _wrap_text(
        f"- `{name}`{mark}: {_allowed_values(part, name)}. {resolve_reference(part)['description']}",
        indent="  ",
    )


def _allowed_values(part: Schema, name: str) -> str:
    """Return the allowed values: words, a link to a definition, or types; then the default or examples."""
    known = resolve_reference(part)
    config = find_any_config(name, DEFAULT_VERSION)
    if known.get("type") == _CONFIG_VALUE and config is not None:
        return allowed_values(config) + _remark_of(known, "")
    linked = part.get("$ref", "").removeprefix("#/$defs/")
    if "enum" in known:
        phrase = quote_words(dict.fromkeys(map(yaml_literal, known["enum"])))
    elif linked in _LINKED or linked == _NAME_OR_BUILDER:
        phrase = _link_to(linked)
    elif known.get("type") == "array":
        phrase = f"list of {_element_text(known['items'])}"
    else:
        phrase = type_names(known.get("type", "object"))
    return phrase + _remark_of(known, linked)


def _remark_of(known: Schema, linked: str) -> str:
    if "default" in known:
        return f"; default `{yaml_literal(known['default'])}`"
    shown = [yaml_literal(example) for example in known["examples"] if not isinstance(example, bool)]
    is_helpful = not linked and "enum" not in known and shown and len(shown[0]) < 50
    return f", such as `{shown[0]}`" if is_helpful else ""


def _element_text(items: Schema) -> str:
    linked = items.get("$ref", "").removeprefix("#/$defs/")
    if linked == "step":
        return "[operators](#operators)"
    return (
        _link_to(linked)
        if linked in _LINKED or linked == _NAME_OR_BUILDER
        else type_names(resolve_reference(items)["type"])
    )


def _link_to(name: str) -> str:
    if name == _NAME_OR_BUILDER:
        return f"{_link_to('name')} or {_link_to('storeBuilder')}"
    return f"[{name}](#{name.lower()})"


def _wrap_text(text: str, indent: str = "") -> str:
    """Return a paragraph or a list item in lines of at most 120 characters; code spans may be longer."""
    lines = textwrap.wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


ROOT = Path(__file__).parents[2]
DOCUMENTATION = ROOT / "docs/documents.md"
_START = "# Reference\n\n"


def test_the_reference_is_generated_from_the_schema() -> None:
    guide, _, written = DOCUMENTATION.read_text().partition(_START)
    if "UPDATE_GOLDEN" in os.environ:
        DOCUMENTATION.write_text(guide + _START + reference())
        return
    assert written == reference()


def test_each_operator_is_in_a_group_of_the_reference() -> None:
    assert sorted(name for names in GROUPS.values() for name in names.split()) == sorted(operator_names())


def test_the_page_has_no_broken_links() -> None:
    text = DOCUMENTATION.read_text()
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}

    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings, target
        else:
            assert (DOCUMENTATION.parent / target).exists(), target


def snippets() -> list[str]:
    guide = DOCUMENTATION.read_text().partition(_START)[0]
    return re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)


@pytest.mark.parametrize("snippet", snippets())
def test_the_snippets_of_the_guide_are_valid(snippet: str, tmp_path: Path) -> None:
    (tmp_path / "billing.describe.txt").write_text(
        "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [t])\n      --> none\n\n"
    )
    text = snippet if "application:" in snippet else f"application: {{id: shown}}\n{snippet}"

    problems = load_text(text, str(tmp_path / "shown.yaml")).problems

    assert [problem for problem in problems if problem.severity is Severity.ERROR] == []


def test_the_page_has_the_limits_of_the_code() -> None:
    text = " ".join(DOCUMENTATION.read_text().split())
    assert f"at most {MAX_BYTES // 1024**2} MiB, {MAX_NODES:,} values and {MAX_DEPTH} levels" in text
