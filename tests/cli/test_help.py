"""The text of `--help`, and its run time."""

import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headwater.cli.main import _COMMANDS, main
from headwater_spark.driver.input.sources import RECORDS_AT_ONCE


@pytest.mark.parametrize("name", _COMMANDS)
def test_help_of_each_command_has_examples(name: str) -> None:
    help_text = CliRunner().invoke(main, [name, "--help"]).output
    examples = [line for line in help_text.splitlines() if f"headwater {name} " in f"{line} "]
    assert name == "local" or len(examples) > 1, help_text


@pytest.mark.parametrize("name", _COMMANDS)
def test_command_list_matches_the_help_of_each_command(name: str) -> None:
    command = _COMMANDS[name].load()
    assert command.help is not None
    first = re.split(r"(?<=\.)\s", " ".join(command.help.split()))[0]
    assert first == _COMMANDS[name].help


def _help_texts(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    yield path, command.help or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _help_texts(child, f"{path} {name}")


def test_help_refers_only_to_files_of_the_wheel() -> None:
    """`docs/problems.md` is in it."""
    texts = dict(_help_texts(main, "headwater"))
    assert len(texts) > len(_COMMANDS)
    files = {path: set(re.findall(r"README\.md|\bdocs/[\w./-]*", text)) for path, text in texts.items()}
    named = {path: names for path, names in files.items() if names - {"docs/problems.md"}}
    # `headwater new` creates a README.md.
    assert named == {"headwater new": {"README.md"}}


def test_help_of_run_has_the_default_number_of_records() -> None:
    help_text = " ".join(CliRunner().invoke(main, ["run", "--help"]).output.split())
    assert f"records that are processed at once; default: {RECORDS_AT_ONCE:,}." in help_text


_DOCUMENT = "application: {id: shop}\ntopology: [{stream: {topic: orders}}, {to: {topic: out}}]\n"


@pytest.fixture
def document(tmp_path: Path) -> str:
    path = tmp_path / "shop.yaml"
    path.write_text(_DOCUMENT)
    return str(path)


def _imported_modules(*arguments: str, before: str = "") -> set[str]:
    """Return the modules that a command imports; `before` are imports of the process that calls it.

    The run time depends on the machine, the modules do not.
    """
    program = (
        "import sys\n"
        f"{before}\n"
        "from headwater.cli.main import main\n"
        f"try: main({list(arguments)!r})\n"
        "except SystemExit as error: assert error.code == 0, error.code\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "headwater.cli.main" in loaded
    return loaded


def test_help_imports_no_command() -> None:
    heavy = {
        "rich",
        "yaml",
        "jsonschema",
        "confluent_kafka",
        "pulumi",
        "jinja2",
        "headwater.spec",
        "headwater.compiler",
    }
    assert not _imported_modules("--help") & heavy


@pytest.mark.parametrize("command", ["plan", "drift"])
def test_help_of_commands_for_clusters_imports_no_client_and_no_documents(command: str) -> None:
    loaded = _imported_modules(command, "--help")
    assert "headwater.cli.stack_context" in loaded
    assert not loaded & {"confluent_kafka", "yaml", "headwater.model.topology", "headwater.compiler"}


def test_validate_imports_no_client_and_no_planner(document: str) -> None:
    loaded = _imported_modules("validate", document)
    assert "headwater.compiler" in loaded
    assert not loaded & {"confluent_kafka", "asyncio", "rich", "headwater.planner"}


@pytest.mark.parametrize(
    "command",
    [
        ["compile"],
        pytest.param(["compile", "--format", "json"], marks=pytest.mark.slow),
        pytest.param(["describe"], marks=pytest.mark.slow),
        pytest.param(["acls"], marks=pytest.mark.slow),
    ],
)
def test_commands_without_a_cluster_import_no_client(command: list[str], document: str) -> None:
    loaded = _imported_modules(
        *command, document, *(["--partitions", "orders=1"] * (command[0] == "compile"))
    )
    assert "headwater.compiler" in loaded
    assert not loaded & {"confluent_kafka", "asyncio"}


def test_a_comparison_of_valid_documents_imports_no_logs_and_no_http(document: str) -> None:
    parts = (
        "headwater.cli.drift, headwater.cli.plan, headwater.operations.observation, headwater.planner.drift"
    )
    loaded = _imported_modules("validate", document, before=f"import {parts}")
    # structlog logs lines of clients, with rich and asyncio; HTTP requests tokens.
    assert not loaded & {"structlog", "rich.traceback", "headwater.kafka.token_request"}


def test_help_takes_little_cpu() -> None:
    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    subprocess.run([sys.executable, "-m", "headwater.cli", "--help"], capture_output=True, check=True)
    assert spent() - before < 0.6  # 0.12 s on an idle machine
