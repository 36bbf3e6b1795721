"""The README is up to date: its commands are run, its tables compared. `UPDATE_GOLDEN=1` rewrites both."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headwater.cli.console import ExitCode
from headwater.cli.demo.steps import STEPS
from headwater.cli.main import _COMMANDS
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.preloaded import folder_of_shims

_ROOT = Path(__file__).parents[2]
_README = _ROOT / "README.md"
_PAGES = sorted((_ROOT / "docs").rglob("*.md"))
_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_ADDRESS = "localhost:9092"
_SECONDS = 60


@pytest.mark.broker
def test_readme_commands_print_the_quoted_output(own_broker: Callable[[], Broker], tmp_path: Path) -> None:
    text = _README.read_text(encoding="utf-8")
    with own_broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for topic in ("orders", "busy-customers"):
            admin.create_topics([NewTopic(topic, 6, 1)])[topic].result()
            # The broker that answers learns of a new topic a moment later.
            assert until(partial(_is_known, admin, topic), _SECONDS)

        def replayed(block: re.Match[str]) -> str:
            kind, body = block.groups()
            if kind == "yaml":
                (tmp_path / body.split()[1]).write_text(body, encoding="utf-8")
                return block[0]
            commands = re.findall(r"^\$ (.*)$", body, re.MULTILINE)
            shown = "".join(f"$ {line}\n{_output(line, broker, tmp_path)}" for line in commands)
            return f"```console\n{shown}```\n"

        _compare(text, _BLOCK.sub(replayed, text))


def _is_known(admin: AdminClient, topic: str) -> bool:
    return topic in admin.list_topics(timeout=_SECONDS).topics


def _output(command: str, broker: Broker, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command.replace(_ADDRESS, broker.bootstrap_servers)],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder_of_shims()}:{os.environ['PATH']}", "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip().splitlines())


def test_readme_tables_match_the_program() -> None:
    text = expected = _README.read_text(encoding="utf-8")
    for head, rows in _tables():
        body = "".join(f"{row}\n" for row in rows)
        expected = re.sub(
            rf"(^{re.escape(head)}\n\|---\|---\|\n)(\|.*\n)*",
            partial(_filled, body),
            expected,
            flags=re.MULTILINE,
        )
    _compare(text, expected)


def _filled(body: str, table: re.Match[str]) -> str:
    return table[1] + body


def _tables() -> Iterator[tuple[str, list[str]]]:
    yield (
        "| step | expected result |",
        [f"| {number}. {step.title} | {step.expected} |" for number, step in enumerate(STEPS, 1)],
    )
    yield "| command | does |", [f"| `headwater {name}` | {lazy.help} |" for name, lazy in _COMMANDS.items()]
    yield "| exit code | meaning |", [f"| {code.value} | {code.meaning} |" for code in ExitCode]


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md", "docs/README.md", "docs/operations.md"])
def test_links_have_targets(file: str) -> None:
    page = _ROOT / file
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert targets
    assert not [target for target in targets if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_links_of_a_page_name_files_and_headings(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8")):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not heading or heading in _anchors(file), f"{target}#{heading}"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_the_tests_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(r"`([\w/]+/test_\w+)(?:::(test_\w+))?`", page.read_text(encoding="utf-8"))
    assert len(named) > 80 or page.name != "kips.md"
    for file, test in named:
        content = (_ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8")
        assert not test or f"def {test}(" in content, f"{file}::{test}"


def test_operations_guide_lists_all_stack_settings() -> None:
    text = (_ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    settings = (_ROOT / "infra" / "headwater" / "pulumi" / "settings.py").read_text(encoding="utf-8")
    keys = re.findall(r'^    "(\w+)": "HEADWATER_', settings, re.MULTILINE)
    others = re.search(r"_OTHERS = \(([^)]*)\)", settings)
    assert others is not None
    keys += re.findall(r'"(\w+)"', others[1])
    assert len(keys) > 15
    assert not [key for key in keys if f"`{key}`" not in text]


def _compare(text: str, expected: str) -> None:
    if "UPDATE_GOLDEN" in os.environ:
        _README.write_text(expected, encoding="utf-8")
    assert text == expected
