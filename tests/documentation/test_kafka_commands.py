"""Commands of Kafka's tools, in pages and in what Headwater prints, can be run as they are written."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGES = sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md")])
_SOURCES = sorted(
    [
        *(_ROOT / "infra").rglob("*.py"),
        *(_ROOT / "spark_jobs").rglob("*.py"),
        *(_ROOT / "streams_library" / "src").rglob("*.java"),
    ]
)
_COMMAND = re.compile(r"kafka-[a-z-]+\.sh ((?:--|upgrade |unregister )[^`;\n]*)")
"""A tool with options; without options, a sentence only names the tool."""
_SERVER = "--bootstrap-server"


def _of_page(text: str) -> Iterator[str]:
    """Yield the options of each command: of a line of code, or of code in a sentence that is wrapped."""
    blocks = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
    for block in blocks.finditer(text):
        yield from _COMMAND.findall(re.sub(r"\s*\\\n\s*", " ", block[1]))
    for span in re.findall(r"`([^`]+)`", blocks.sub("", text)):
        yield from _COMMAND.findall(" ".join(span.split()))


def _of_source(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    if "kafka-" in source:  # most modules name no tool
        for text in _java_texts(source) if path.suffix == ".java" else python_texts(source):
            yield from _COMMAND.findall(text)


def python_texts(source: str) -> Iterator[str]:
    """Yield each text of a module in one line, with `{}` for its expressions."""
    nodes = list(ast.walk(ast.parse(source)))
    parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts_of = (str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
            yield " ".join("".join(parts_of).split())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield " ".join(node.value.split())


def _java_texts(source: str) -> list[str]:
    return re.findall(r'"([^"\n]*)"', re.sub(r'"\s*\+\s*"', "", source))


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_commands_of_a_page_name_the_cluster(page: Path) -> None:
    assert [each for each in _of_page(page.read_text(encoding="utf-8")) if _SERVER not in each] == []


def test_commands_that_are_printed_name_the_cluster() -> None:
    found = {str(path.relative_to(_ROOT)): list(_of_source(path)) for path in _SOURCES}
    assert sum(map(len, found.values())) > 15
    wrong = {path: [each for each in options if _SERVER not in each] for path, options in found.items()}
    assert {path: options for path, options in wrong.items() if options} == {}


def test_commands_are_found_in_each_kind_of_text(tmp_path: Path) -> None:
    page = (
        "`kafka-topics.sh\n--list`, or\n\n```sh\nkafka-acls.sh \\\n  --list\n```\n or `kafka-configs.sh`.\n"
    )
    assert list(_of_page(page)) == ["--list", "--list"]
    java, python = tmp_path / "A.java", tmp_path / "a.py"
    java.write_text('x = "kafka-topics.sh "\n    + "--alter --topic " + topic;\n')
    python.write_text('x = f"Run `kafka-topics.sh " f"--alter {topic}`."\n')
    assert [*_of_source(java), *_of_source(python)] == ["--alter --topic ", "--alter {}"]
