"""`headwater change` with input that is empty, of other applications, or of none."""

import json
from pathlib import Path

import pytest
from click.testing import Result

from headwater.cli.console import ExitCode
from tests.edits.change_command import headwater, read, write
from tests.edits.sides import GENERATED

_TEXT = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [{source}])
      --> KSTREAM-SINK-0000000001
    Sink: KSTREAM-SINK-0000000001 (topic: {sink})
      <-- KSTREAM-SOURCE-0000000000
"""
_OTHER = GENERATED.replace("id: app", "id: other").replace("to: out", "to: other-out")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "orders.txt", _TEXT.format(source="orders", sink="paid"))
    write(tmp_path / "clicks.txt", _TEXT.format(source="clicks", sink="pages"))
    write(tmp_path / "empty.txt", "")
    write(tmp_path / "app.yaml", GENERATED)
    write(tmp_path / "two.yaml", f"{GENERATED}---{_OTHER}")
    write(tmp_path / "state.json", json.dumps({"version": 3, "deployment": {"resources": []}}))


def _errors(done: Result) -> str:
    return " ".join(done.stderr.split())


def test_two_sides_without_anything_in_common_are_named() -> None:
    found = read(headwater("orders.txt", "clicks.txt", "--format", "json"))
    assert "make sure that both are of the same application" in " ".join(found["applications"][0]["remarks"])

    same = read(headwater("orders.txt", "orders.txt", "--format", "json"))
    assert "same application" not in " ".join(same["applications"][0]["remarks"])


@pytest.mark.parametrize("sides", [("empty.txt", "orders.txt"), ("orders.txt", "empty.txt")])
def test_an_empty_text_contains_no_description(sides: tuple[str, str]) -> None:
    done = headwater(*sides)

    assert done.exit_code == ExitCode.PROBLEMS
    assert "error[UnreadableDescribe] The text contains no description of a topology." in _errors(done)


@pytest.mark.parametrize("sides", [("two.yaml", "orders.txt"), ("orders.txt", "two.yaml")])
def test_the_application_of_a_text_has_to_be_named_if_documents_have_several(sides: tuple[str, str]) -> None:
    for options in ((), ("--application-id", "unknown")):
        done = headwater(*sides, *options)
        assert done.exit_code == ExitCode.USAGE
        assert "Name the application that orders.txt describes by --application-id: app, other." in _errors(
            done
        )

    named = read(headwater(*sides, "--application-id", "other", "--format", "json"))
    assert [each["applicationId"] for each in named["applications"]] == ["other"]


def test_an_upgrade_compares_a_text_with_the_application_of_the_document() -> None:
    arguments = ("--to", "4.3", "--before", "orders.txt", "--format", "json")
    found = read(headwater("app.yaml", *arguments, command="upgrade"))
    assert [each["formerApplicationId"] for each in found["applications"]] == [None]

    assert headwater("two.yaml", *arguments, command="upgrade").exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    "arguments",
    [("app.yaml", "two.yaml"), ("app.yaml", "--stack-state", "state.json"), ("app.yaml", "--git", "HEAD")],
)
def test_an_application_id_is_only_for_texts(arguments: tuple[str, ...]) -> None:
    done = headwater(*arguments, "--application-id", "app")

    assert done.exit_code == ExitCode.USAGE
    assert "--application-id is for texts" in _errors(done)


def test_a_stack_without_records_is_named() -> None:
    done = headwater("app.yaml", "--stack-state", "state.json")

    assert done.exit_code == ExitCode.DRIFT
    assert "The stack has no setup record" in _errors(done)
    assert "no application was compared, because none is on both sides" in done.stdout
    assert "New applications: app." in done.stdout

    text = headwater("orders.txt", "--stack-state", "state.json")
    assert text.exit_code == ExitCode.USAGE
    assert "by --application-id: the stack has no setup record." in _errors(text)


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_each_format_has_the_same_exit_codes(form: str, tmp_path: Path) -> None:
    write(tmp_path / "filtered.yaml", GENERATED.replace("- selectKey:", "- filter:\n  - selectKey:"))

    assert headwater("app.yaml", "app.yaml", "--format", form).exit_code == ExitCode.DONE
    assert headwater("app.yaml", "filtered.yaml", "--format", form).exit_code == ExitCode.DRIFT
    assert headwater("app.yaml", "nothing.yaml", "--format", form).exit_code == ExitCode.PROBLEMS
    assert (
        headwater("app.yaml", "filtered.yaml", "--format", form, "--output", "app.yaml/file").exit_code == 1
    )
