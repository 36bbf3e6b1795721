"""Statements of docs/security.md that no other test checks, and that each of its rows names a test."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.control import access_of
from headwater.control.access import TOKEN_VARIABLE
from headwater.model.acls import Operation, Permission
from headwater.model.expansions import AGENT_PREFIX
from headwater.model.records import OWNERSHIP_TOPIC
from headwater.planner.acls import Purpose, headwater_needs
from headwater.spec import load_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
DOCUMENT = """
application: {id: shop}
acls: {principals: ["User:shop"]}
topics: {results: {partitions: 2}}
topology:
  - stream: {topic: orders}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: results}
"""
_NAMED = re.compile(r"`((?:\w+/)+test_\w+)`")


def rows(heading: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the table below a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize(
    "heading",
    [
        "What each credential can do",
        "What is trusted",
        "What listens",
        "Who may write what Headwater reads back",
    ],
)
def test_each_row_names_a_test_that_exists(heading: str) -> None:
    found = list(rows(heading))
    assert len(found) >= 3
    for cells in found:
        named = _NAMED.findall(cells[-1])
        assert named, cells
        assert all((ROOT / "tests" / f"{name}.py").exists() for name in named), cells


def needed(purpose: Purpose) -> tuple[Permission, ...]:
    from headwater.compiler import compile_document  # noqa: PLC0415 - slow, and not needed by the other tests

    [document] = load_text(DOCUMENT, "shop.yaml").documents
    return tuple(need.permission for need in headwater_needs(purpose, [compile_document(document, {})]))


def test_the_user_that_reads_can_change_nothing() -> None:
    reading = {Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS}
    assert {permission.operation for permission in needed(Purpose.PLAN)} <= reading
    # Of records it reads only those of Headwater.
    assert {each.name for each in needed(Purpose.PLAN) if each.operation is Operation.READ} == {
        OWNERSHIP_TOPIC
    }


def test_only_users_of_up_write_ownership_records_and_only_agents_the_journal() -> None:
    writers = {
        purpose: {each.name for each in needed(purpose) if each.operation is Operation.WRITE}
        for purpose in Purpose
    }
    assert writers == {
        Purpose.PLAN: set(),
        Purpose.UP: {OWNERSHIP_TOPIC},
        Purpose.RETIRE: {OWNERSHIP_TOPIC},
        Purpose.AGENT: {AGENT_PREFIX},
        # Internal topics of the application, and transactional ids.
        Purpose.RESHARD: {"shop-", "shop-headwater-"},
    }


def test_only_the_user_that_retires_can_delete_topics() -> None:
    deleting = {
        purpose for purpose in Purpose if any(each.operation is Operation.DELETE for each in needed(purpose))
    }
    assert deleting == {Purpose.RETIRE}


def test_the_control_token_is_in_the_variable_that_the_page_names() -> None:
    [cells] = [cells for cells in rows("What each credential can do") if "control endpoint" in cells[0]]
    assert f"`{TOKEN_VARIABLE}`" in cells[3]
    assert access_of("127.0.0.1:0", {TOKEN_VARIABLE: "t0ken"}).token == "t0ken"
    assert access_of("127.0.0.1:0", {}).token is None


def test_commands_of_which_the_page_says_it_listen_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    [sentence] = re.findall(r"^(`headwater validate`.*?) listen nowhere", PAGE, re.MULTILINE | re.DOTALL)
    commands = re.findall(r"`(?:headwater )?(\w+)`", sentence)
    assert set(commands) == {"validate", "compile", "plan", "drift", "records", "publish", "doctor"}
    listening: list[object] = []
    monkeypatch.setattr(socket.socket, "listen", lambda *arguments: listening.append(arguments))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(DOCUMENT)
    (tmp_path / "report.md").write_text("<!-- a marker -->")
    cluster = ("--bootstrap-server", "127.0.0.1:1")
    arguments = {
        "compile": ("shop.yaml", "--partitions", "orders=2"),
        "plan": ("shop.yaml", *cluster),
        "drift": ("shop.yaml", *cluster),
        "records": ("--stack", "dev"),
        "publish": ("report.md",),
        "doctor": (),
    }
    for command in commands:
        done = CliRunner().invoke(main, [command, *arguments.get(command, ("shop.yaml",))])
        assert done.exit_code in (ExitCode.DONE, ExitCode.PROBLEMS, ExitCode.USAGE), done.output
        assert done.exit_code == ExitCode.DONE or command not in ("validate", "compile"), done.output
    assert listening == []
