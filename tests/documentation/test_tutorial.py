"""The tutorial: its commands are run, and their output is compared. `UPDATE_GOLDEN=1` rewrites it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from headwater.toolchain.broker.readiness import free_ports
from tests.preloaded import headwater
from tests.quick_java import QUICK_JAVA

pytestmark = [pytest.mark.pulumi, pytest.mark.broker, pytest.mark.slow]

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```(sh|yaml|console)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_END = "-- end of block"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A shell in a repository that `headwater new` has created, with this environment's packages.

    Its `headwater` does not start Python, which takes most of the CPU time; Pulumi's programs do.
    """
    (tmp_path / "shop").mkdir()
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "COLUMNS": "120",
        "JDK_JAVA_OPTIONS": " ".join(QUICK_JAVA),
    }
    # The user's Headwater is installed from a wheel, this one is not.
    wheel = f"https://example.com/headwater-0.1.0-py3-none-any.whl#sha256={'0' * 64}"
    subprocess.run(
        [headwater(), "new", ".", "--wheel", wheel], cwd=tmp_path / "shop", env=variables, check=True
    )
    project = tmp_path / "shop" / "Pulumi.yaml"
    project.write_text(project.read_text().replace("virtualenv: .venv", f"virtualenv: {sys.prefix}"))
    with subprocess.Popen(
        ["bash"],
        cwd=tmp_path / "shop",
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdin is not None
        # Not a folder on PATH: `headwater toolchain env` puts others before it.
        process.stdin.write(f'headwater() {{ "{headwater()}" "$@"; }}\n')
        yield process
        process.kill()
    subprocess.run([headwater(), "local", "down", "--delete-data"], env=variables, check=True)


@pytest.mark.timeout(600)
def test_the_commands_of_the_tutorial_print_the_quoted_output(
    shell: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    ports = {"9092": str(free_ports(1)[0])}
    before = _files(tmp_path / "shop")
    text = _PAGE.read_text(encoding="utf-8")

    def replayed(block: re.Match[str]) -> str:
        kind, body = block.groups()
        if kind == "yaml":
            (tmp_path / "shop" / body.split()[1]).write_text(body, encoding="utf-8")
            return block[0]
        if kind == "sh":
            output, have_succeeded = _run(shell, body, ports)
            assert have_succeeded, output
            return block[0]
        (command,) = re.findall(r"^\$ (.*)$", body, re.MULTILINE)
        output, _ = _run(shell, f"{command}\n", ports)
        return f"```console\n$ {command}\n{output}```\n"

    found = _BLOCK.sub(replayed, text)
    assert _files(tmp_path / "shop") == before, "the last section removes what the others create"
    left, _ = _run(shell, "env\n", ports)
    assert not re.search(r"^PULUMI_(BACKEND_URL|CONFIG_PASSPHRASE)=", left, re.MULTILINE)
    if "UPDATE_GOLDEN" in os.environ:
        _PAGE.write_text(found, encoding="utf-8")
    else:
        assert found == text


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def _run(shell: "subprocess.Popen[str]", commands: str, ports: Mapping[str, str]) -> tuple[str, bool]:
    """Run commands in the shell; return what they print, with the ports of the page, and if all succeeded."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    commands = commands.replace("headwater local up", "headwater local up --port 9092")
    for port, free in ports.items():
        commands = commands.replace(port, free)
    shell.stdin.write(
        f"failed=0; trap failed=1 ERR; {{\n{commands}}} < /dev/null; echo; echo '{_END}' $failed\n"
    )
    shell.stdin.flush()
    lines: list[str] = []
    while not (line := shell.stdout.readline()).startswith(_END):
        assert line, "".join(lines)  # the shell has ended
        lines.append(f"{line.rstrip()}\n")
    output = "".join(lines).strip("\n") + "\n"
    for port, free in ports.items():
        output = output.replace(free, port)
    return output, line.split()[-1] == "0"
