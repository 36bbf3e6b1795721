"""`headwater acls` on the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.cli.console import ExitCode
from headwater.compiler import compile_documents
from headwater.planner.acls import Purpose, acls_of, application_needs, headwater_needs
from headwater.spec import load_documents
from tests.acls.secured_cluster import granted
from tests.cli.conftest import EXAMPLES, Headwater, headwater

__all__ = ["headwater"]

Golden = Callable[[Path, str], None]
_GOLDEN = Path(__file__).parent / "golden"
_EXAMPLE = EXAMPLES / "features" / "acls.yaml"
_DOCUMENTS = [EXAMPLES / f"{name}.yaml" for name in ("fulfilment", "order-enrichment", "revenue-by-category")]


@pytest.mark.parametrize("form", ["text", "json", "commands"])
def test_each_format(headwater: Headwater, golden: Golden, form: str) -> None:
    done = headwater("acls", _EXAMPLE, "--format", form)
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    golden(_GOLDEN / f"acls.{form}", done.stdout)


@pytest.mark.parametrize("purpose", Purpose)
def test_the_permissions_of_headwater(headwater: Headwater, golden: Golden, purpose: Purpose) -> None:
    done = headwater("acls", *_DOCUMENTS, "--self", "--for", purpose.value, "--principal", "User:headwater")
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    golden(_GOLDEN / f"headwater-{purpose}.text", done.stdout)


def test_the_commands_grant_what_the_plan_grants(headwater: Headwater) -> None:
    done = headwater("acls", _EXAMPLE, "--format", "commands", "--bootstrap-server", "")
    assert done.returncode == ExitCode.PROBLEMS  # no such server
    done = headwater("acls", _EXAMPLE, "--format", "commands")
    [compiled] = compile_documents(load_documents([_EXAMPLE]).documents, {})
    declared = compiled.application.acls
    assert declared is not None
    needs = application_needs(compiled, declared)
    assert set(granted(done.stdout)) == set(acls_of(needs, declared.principals, declared.hosts))
    done = headwater(
        "acls", *_DOCUMENTS, "--self", "--for", "retire", "--principal", "User:hw", "--format=commands"
    )
    needs = headwater_needs(Purpose.RETIRE, compile_documents(load_documents(_DOCUMENTS).documents, {}))
    assert set(granted(done.stdout)) == set(acls_of(needs, ["User:hw"], ["*"]))


def test_the_principal_option_replaces_the_declared_principals(headwater: Headwater) -> None:
    done = headwater("acls", _EXAMPLE, "--principal", "User:me", "--format", "json")
    [grants] = json.loads(done.stdout)["grants"]
    assert grants["principals"] == ["User:me"]
    assert grants["hosts"] == ["10.1.2.3", "10.1.2.4"]


def test_the_format_commands_requires_a_principal(headwater: Headwater) -> None:
    done = headwater("acls", *_DOCUMENTS, "--format", "commands")
    assert done.returncode == ExitCode.USAGE
    assert "fulfilment, order-enrichment, revenue-by-category: use --principal" in done.stderr
    assert headwater("acls").returncode == ExitCode.USAGE
    assert headwater("acls", "--self").returncode == ExitCode.DONE


def test_incomplete_and_invalid_declarations_are_reported(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(
        "application: {id: app}\ntopology: [{stream: {topic: a}}, {to: {extractor: x}}]\n"
    )
    done = headwater("acls", "app.yaml")
    assert done.returncode == ExitCode.DONE
    assert "warning[AclsIncomplete]" in done.stderr
    (tmp_path / "app.yaml").write_text("application: {id: app}\nacls: {principals: [orders]}\ntopology: []\n")
    done = headwater("acls", "app.yaml")
    assert done.returncode == ExitCode.PROBLEMS
    assert "User:orders-app" in done.stderr


def test_commands_connect_as_this_command_does(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("bootstrap.servers=kafka-1:9092,kafka-2:9092\n")
    script = ("acls", "--self", "--principal", "User:hw", "--format", "commands")
    assert "--bootstrap-server BROKER --add" in headwater(*script).stdout
    of_file = headwater(*script, "--command-config", "client.properties")
    lines = [line for line in of_file.stdout.splitlines() if line.startswith("kafka-acls.sh")]
    connected = "--bootstrap-server kafka-1:9092,kafka-2:9092 --command-config client.properties --add"
    assert lines
    assert all(connected in line for line in lines)
    both = headwater(*script, "--command-config", "client.properties", "--bootstrap-server", "kafka-3:9092")
    assert "--bootstrap-server kafka-3:9092 --command-config client.properties" in both.stdout
