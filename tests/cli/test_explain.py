"""`headwater explain`: the guide to problem codes in the terminal."""

import json
import re
import sys

import pytest

from headwater.cli.console import ExitCode
from headwater.cli.explain import problem_guide
from headwater.model.problems import ProblemCode
from tests.cli.conftest import Headwater
from tests.cli.screen import lines_on_screen, output_on_terminal


@pytest.mark.parametrize("code", ProblemCode, ids=str)
def test_each_code_is_explained_without_links(headwater: Headwater, code: ProblemCode) -> None:
    done = headwater("explain", code)
    assert done.returncode == ExitCode.DONE
    assert done.stdout.startswith(f"{code}\n\n")
    assert "**Why it matters**:" in done.stdout
    assert "**Do**" in done.stdout
    assert not re.search(r"\]\(|\(#", done.stdout)


@pytest.mark.parametrize("word", ["wrongcluster", "error[WrongCluster]", "WrongCluster]"])
def test_a_code_may_be_copied_from_the_output(headwater: Headwater, word: str) -> None:
    assert headwater("explain", word).stdout.startswith("WrongCluster\n")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("WrongClutser", "WrongCluster"),
        ("partitioned", "OverPartitionedInternalTopic"),
        ("missing-internal-topic", "MissingInternalTopics"),
    ],
)
def test_near_codes_are_suggested(headwater: Headwater, word: str, meant: str) -> None:
    done = headwater("explain", word)
    assert done.returncode == ExitCode.USAGE
    assert meant in done.stderr


def test_a_code_that_resembles_none_leads_to_the_list(headwater: Headwater) -> None:
    done = headwater("explain", "xyz")
    assert done.returncode == ExitCode.USAGE
    assert "`headwater explain` lists all codes." in done.stderr


def test_without_a_code_all_are_listed(headwater: Headwater) -> None:
    lines = headwater("explain").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(problem_guide())
    assert max(map(len, lines)) <= 34 + 100
    assert not [line for line in lines if "One of these" in line or " - " in line]
    found = json.loads(headwater("explain", "--format", "json").stdout)
    assert {each["code"] for each in found["problems"]} == {code.value for code in ProblemCode}


def test_a_terminal_shows_formatted_text() -> None:
    program = "from headwater.cli.main import main; main()"
    command = (sys.executable, "-c", program, "explain", "WrongCluster")
    lines = lines_on_screen(output_on_terminal(command))
    assert lines[0] == "WrongCluster"
    assert any("Why it matters:" in line for line in lines)
