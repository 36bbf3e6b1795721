"""A stack of a test: a folder with a Pulumi project, its state in files, and the CLI that runs it."""

import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
import yaml

from headwater.toolchain import PulumiToolchain, file_backend
from headwater.toolchain.sessions import kill_session
from tests.preloaded import PIP_LIST, folder_of_shims, pip_list

_ROOT = Path(__file__).parents[2]
_PROJECT = "name: headwater\nruntime: python\n"
_SECONDS = 600  # more than any command takes; pytest has a timeout of its own
_KILLED_SECONDS = 60
_INTERRUPTED_SECONDS = 60
_PIP = f"""
import pathlib, sys
if sys.argv[1:] != {list(PIP_LIST[2:])}:
    sys.exit(f"no answer of pip is recorded for {{sys.argv[1:]}}")
print(pathlib.Path(__file__).with_name("list.json").read_text())
"""
# Python runs it at its start. A tenth of a program's CPU time are garbage collections during its imports.
_SITE = """
import gc
gc.set_threshold(50_000)
"""
_KEY = "hashivault://headwater"
_CIPHERTEXT = "vault:v1:"
STACK = "test"


@attrs.frozen
class Outcome:
    """Exit code and output of a run of the CLI."""

    code: int
    text: str

    @property
    def succeeded(self) -> bool:
        return self.code == 0

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.text}"


@attrs.frozen
class Stack:
    """`folder` holds the project (the repository's `__main__.py`), `documents/` and the state."""

    folder: Path
    toolchain: PulumiToolchain
    environment: Mapping[str, str] = attrs.field(factory=dict)
    is_preloaded: bool = False
    """Whether programs of `run` are forks of a process that has imported their modules."""
    has_passphrase: bool = True
    """Whether a passphrase encrypts the secrets: with `_key_service`, a run takes a quarter less CPU time."""

    @classmethod
    def create(
        cls,
        folder: Path,
        toolchain: PulumiToolchain,
        settings: Mapping[str, Any],
        *,
        program: str | None = None,
        environment: Mapping[str, str] | None = None,
        is_preloaded: bool = False,
        has_passphrase: bool = True,
    ) -> "Stack":
        """Create a stack with the `headwater:` keys `settings`. `program` replaces the repository's own."""
        shutil.copytree(_empty_stack(toolchain, has_passphrase=has_passphrase), folder)
        (folder / "documents").mkdir()
        if program is None:
            shutil.copy(_ROOT / "__main__.py", folder)
        else:
            (folder / "__main__.py").write_text(program)
        stack = cls(folder, toolchain, environment or {}, is_preloaded, has_passphrase)
        stack.configure({"documents": "documents", **settings})
        return stack

    def initialize(self) -> None:
        """Create the stack in its backend."""
        self.succeed("stack", "init", STACK, *(() if self.has_passphrase else ("--secrets-provider", _KEY)))

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Set `headwater:` keys, keeping the others; None removes one."""
        file = self.folder / f"Pulumi.{STACK}.yaml"
        content = _read_yaml(file)
        config = content.setdefault("config", {})
        for key, value in settings.items():
            if value is None:
                config.pop(f"headwater:{key}", None)
            else:
                config[f"headwater:{key}"] = value
        file.write_text(json.dumps(content))

    def settings(self) -> dict[str, Any]:
        """Return the settings, whose keys begin with `headwater:`."""
        return dict(_read_yaml(self.folder / f"Pulumi.{STACK}.yaml").get("config") or {})

    @property
    def encrypted_key(self) -> str:
        """Return what the state has, too: the encrypted key of the secrets, or the salt of the passphrase."""
        content = _read_yaml(self.folder / f"Pulumi.{STACK}.yaml")
        return str(content.get("encryptedkey") or content["encryptionsalt"])

    def set_secret(self, key: str, value: str) -> None:
        self.succeed("config", "set", "--secret", f"headwater:{key}", value)

    def document(self, name: str, text: str | None) -> None:
        """Write a topology document; None removes it."""
        path = self.folder / "documents" / f"{name}.yaml"
        if text is None:
            path.unlink()
        else:
            path.write_text(text)

    def up(self, *flags: str, with_preview: bool = False) -> Outcome:
        preview = () if with_preview else ("--skip-preview",)
        return self.run("up", "--yes", *preview, "--parallel", "16", *flags)

    def preview(self, *flags: str) -> Outcome:
        return self.run("preview", *flags)

    def run(self, *arguments: str) -> Outcome:
        process = self._start(*arguments, environment=self.environment_of_run())
        try:
            output, _ = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"pulumi {' '.join(arguments)} did not end:\n{kill(process)}") from None
        return Outcome(process.returncode, output)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start the CLI in a session of its own.

        A test may kill all processes of the session: then a preloaded program is killed, too.
        """
        return self._start(*arguments, environment=self.environment_of_run())

    def environment_of_run(self) -> dict[str, str]:
        """Return the variables of a run, whose program may be preloaded."""
        environment = self._environment()
        if self.is_preloaded:
            environment["PATH"] = f"{folder_of_shims()}:{environment['PATH']}"
        return environment

    def _start(self, *arguments: str, environment: Mapping[str, str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [
                self.toolchain.cli,
                *arguments,
                "--non-interactive",
                "--color",
                "never",
                *(
                    ()
                    if arguments[0] in ("login", "package") or arguments[:2] == ("stack", "init")
                    else ("--stack", STACK)
                ),
            ],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def succeed(self, *arguments: str) -> str:
        outcome = self.run(*arguments)
        assert outcome.succeeded, f"pulumi {' '.join(arguments)}: {outcome}"
        return outcome.text

    @property
    def state_file(self) -> Path:
        (file,) = (self.folder / "state").rglob(f"stacks/*/{STACK}.json")
        return file

    def state(self) -> list[dict[str, Any]]:
        """Return the resources in the state, read from its file: `stack export` takes half a second."""
        latest = json.loads(self.state_file.read_text(encoding="utf-8"))["checkpoint"]["latest"]
        return list((latest or {}).get("resources") or ())

    def pending_operations(self) -> list[dict[str, Any]]:
        """Return the pending operations in the state."""
        latest = json.loads(self.state_file.read_text(encoding="utf-8"))["checkpoint"]["latest"]
        return list(latest.get("pending_operations") or ())

    def outputs(self) -> dict[str, Any]:
        """Return the outputs of the stack, which its program exports."""
        [stack] = [resource for resource in self.state() if resource["type"] == "pulumi:pulumi:Stack"]
        return dict(stack["outputs"])

    def topics(self) -> dict[str, dict[str, Any]]:
        """Return topic name → its resource in the state."""
        return {
            resource["urn"].rpartition("::")[2]: resource
            for resource in self.state()
            if resource["type"] == "kafka:index/topic:Topic"
        }

    def _environment(self) -> dict[str, str]:
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "KAFKA_"))
        }
        return {**self.toolchain.environment(clean, home=self.folder / "home"), **self.variables}

    @property
    def variables(self) -> dict[str, str]:
        """Return what the CLI needs to find the stack."""
        passphrase = {"PULUMI_CONFIG_PASSPHRASE": "correct horse battery staple"}
        return {
            "PULUMI_BACKEND_URL": file_backend(self.folder / "state"),
            **(passphrase if self.has_passphrase else {"VAULT_SERVER_URL": _key_service()}),
            **time_saving_variables(),
            **self.environment,
        }


class _Transit(BaseHTTPRequestHandler):
    """The requests to Vault's transit engine that the CLI sends: to encrypt and to decrypt its data key."""

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/v1/transit/encrypt/"):
            data = {"ciphertext": f"{_CIPHERTEXT}{body['plaintext']}"}
        else:
            data = {"plaintext": body["ciphertext"].removeprefix(_CIPHERTEXT)}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": data}).encode())

    def log_message(self, *_: object) -> None:
        """Discard the log line."""


@cache
def _key_service() -> str:
    """Return the address of a server that encrypts the data keys of stacks, as Vault does for users.

    From a passphrase, the CLI derives the key with a million iterations in each run.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Transit)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


@cache
def _empty_stack(toolchain: PulumiToolchain, *, has_passphrase: bool) -> Path:
    """Return a folder with an initialized stack, which tests copy: `stack init` takes a second each time."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-stack-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "state").mkdir()
    (folder / "Pulumi.yaml").write_text(_PROJECT)
    stack = Stack(folder, toolchain, has_passphrase=has_passphrase)
    stack.initialize()
    shutil.rmtree(folder / "home")
    return folder


def time_saving_variables() -> dict[str, str]:
    """Return variables with which a run of the CLI takes less CPU time, and does the same."""
    return {
        "PYTHONPATH": str(_python_path()),
        "GOGC": "400",  # the CLI and the plugins end before they need much memory
    }


@cache
def _python_path() -> Path:
    """Return a folder with settings of Python, and a module `pip` that repeats the answer of the real one.

    The language host runs `pip list` before each program. That takes a quarter of the CPU time of a run, and
    each answer is the same. The test of the tutorial runs the real one.
    """
    folder = Path(tempfile.mkdtemp(prefix="headwater-pip-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    package = folder / "pip"
    package.mkdir()
    (package / "list.json").write_bytes(pip_list())
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(_PIP)
    (folder / "sitecustomize.py").write_text(_SITE)
    return folder


def end(process: "subprocess.Popen[str]", *, seconds: float) -> Outcome:
    """Wait for the CLI to end; after `seconds` interrupt it as Ctrl-C would, after ten more a second time.

    The second interrupt ends it at once. Without the time for that, its lock would remain.
    """
    for timeout in (seconds, 10, _INTERRUPTED_SECONDS):
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
        else:
            return Outcome(process.returncode, output)
    output = kill(process)
    return Outcome(process.returncode, output)


def wait_for_lines(process: "subprocess.Popen[str]", text: str, *, count: int, seconds: float) -> None:
    """Wait until the CLI has printed `count` lines with the text. Kill it after `seconds`."""
    assert process.stdout is not None
    timeout = threading.Timer(seconds, kill_session, [process.pid])
    timeout.start()
    try:
        lines: list[str] = []
        while sum(text in line for line in lines) < count:
            lines.append(process.stdout.readline())
            assert lines[-1], f"ended before {count} lines with {text!r}:\n{''.join(lines)}"
    finally:
        timeout.cancel()


def kill(process: "subprocess.Popen[str]") -> str:
    """Kill the CLI and all its children (language host, program, plugins); return what it had written.

    Plugins have process groups of their own, but are in the session of the CLI.
    """
    kill_session(process.pid)
    output, _ = process.communicate(timeout=_KILLED_SECONDS)
    return output


def _read_yaml(file: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(file.read_text()) or {}) if file.exists() else {}
