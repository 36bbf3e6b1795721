"""The formats of a drift report: complete texts, valid documents, no active content."""

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs
import jsonschema
import pytest
from markdown_it import MarkdownIt

from headwater.model.problems import Severity
from headwater.planner.drift import Drift, FindingKind
from headwater.report.drift.pages import drift_junit, drift_page
from headwater.report.drift.texts import drift_json, drift_markdown, drift_text
from headwater.report.markdown import LIMIT
from tests.drift import drift_cases
from tests.report.test_escaping import is_command

GOLDEN = Path(__file__).parent / "golden"
AT = datetime(2026, 11, 21, 13, 40, tzinfo=UTC)
CASES = {case.__name__: case for case in (drift_cases.clean, drift_cases.changed, drift_cases.incomplete)}
FORMATS: dict[str, Callable[[Drift], str]] = {
    "txt": lambda drift: f"{drift_text(drift)}\n",
    "json": lambda drift: json.dumps(drift_json(drift), indent=2, ensure_ascii=False) + "\n",
    "md": drift_markdown,
    "xml": drift_junit,
    "html": lambda drift: drift_cases.without_style(drift_page(drift, AT)),
}
SCHEMA = json.loads(files("topology_schemas").joinpath("drift.v1.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_each_format_of_each_case(case: str, form: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{case}.{form}", FORMATS[form](CASES[case]()))


@pytest.mark.parametrize("case", [*CASES.values(), drift_cases.hostile])
def test_json_is_valid_for_its_schema(case: Callable[[], Drift]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(drift_json(case()))


def test_the_schema_has_each_kind_of_finding() -> None:
    assert SCHEMA["$defs"]["finding"]["properties"]["kind"]["enum"] == [kind.value for kind in FindingKind]


def test_cases_of_junit_have_different_names() -> None:
    """Of several cases with the same names, GitLab shows one."""
    drift = drift_cases.incomplete()
    repeated = attrs.evolve(drift, problems=(*drift.problems, *drift.problems))
    root = ET.fromstring(drift_junit(repeated))  # noqa: S314 - text that Headwater wrote
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.findall(".//testcase")]
    assert len(names) == len(set(names)) == int(root.attrib["tests"])


@pytest.mark.parametrize("case", [*CASES.values(), drift_cases.hostile])
def test_junit_is_valid_xml_with_correct_counts(case: Callable[[], Drift]) -> None:
    drift = case()
    root = ET.fromstring(drift_junit(drift))  # noqa: S314 - text that Headwater wrote
    differing = {(finding.application, finding.topic) for finding in drift.differences}
    assert int(root.attrib["failures"]) == len(differing) == len(root.findall(".//failure"))
    assert int(root.attrib["errors"]) == len(drift.problems) == len(root.findall(".//error"))
    assert int(root.attrib["tests"]) == len(root.findall(".//testcase"))


class _Elements(HTMLParser):
    """The tags, links and ids in an HTML text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("href", "src", "xlink:href"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")


@pytest.mark.parametrize("case", [*CASES.values(), drift_cases.hostile])
def test_the_page_has_no_scripts_no_external_content_and_no_broken_links(case: Callable[[], Drift]) -> None:
    text = drift_page(case(), AT)
    page = _Elements(text)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "base"}
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org)", text)


def test_the_graph_labels_each_drifted_topic() -> None:
    text = drift_page(drift_cases.changed(), AT)
    for note in ("9 ≠ 4", "re-created", "different settings", "6 instead of 12"):
        assert f">{note}</text>" in text


def test_hostile_names_are_escaped() -> None:
    drift = drift_cases.hostile()
    assert "<script" not in drift_page(drift)
    for text in (drift_text(drift), drift_markdown(drift), drift_page(drift), drift_junit(drift)):
        assert not set(text) & set("\x1b\x07\N{RIGHT-TO-LEFT OVERRIDE}")
        assert not [line for line in text.splitlines() if is_command(line)]


def test_hostile_names_are_neither_markup_nor_mentions_in_markdown() -> None:
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(drift_markdown(drift_cases.hostile()))
    page = _Elements(rendered)
    assert not page.tags & {"script", "a", "img"}
    assert "@team" not in re.sub(r"<code>.*?</code>", "", rendered)


@pytest.mark.parametrize("drifted", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_page_of_a_thousand_topics_is_smaller_than_three_megabytes(*, drifted: bool) -> None:
    drift = drift_cases.large(1_000, drifted=drifted)
    assert sum(len(part.topics) for part in drift.applications) == 1_000
    assert drift.is_clean is not drifted
    start = time.process_time()
    text = drift_page(drift, AT)
    assert len(text.encode()) < 3_000_000
    assert time.process_time() - start < 5


def test_markdown_of_a_large_drift_fits_into_an_issue() -> None:
    drift = drift_cases.large(3_000)
    text = drift_markdown(drift)
    assert len(text) <= LIMIT
    assert text.startswith("**Drift: 3,000 differences")
    assert "the end is left out, because comments and issues on GitHub have at most 65,536 char" in text
    assert text.endswith("`headwater drift --format html` shows all.*\n")
    assert len(drift_markdown(drift, limit=10_000_000)) > LIMIT


def test_shortened_markdown_begins_with_errors_and_omits_applications_as_declared() -> None:
    drift = drift_cases.changed()
    whole = drift_markdown(drift)
    short = drift_markdown(drift, limit=len(whole) - 1)
    kept = re.findall(r"^### `(.+?)`", short, re.MULTILINE)
    findings = {part.id: {finding.severity for finding in part.findings} for part in drift.applications}
    assert all(findings[id_] for id_ in kept)
    has_error = [Severity.ERROR in findings[id_] for id_ in kept]
    assert has_error == sorted(has_error, reverse=True)
    assert "shortened: applications without a finding are not listed" in short
