"""`headwater` and Pulumi programs in forks of a process that has imported their modules.

Most of the CPU time of short programs are imports. `folder_of_shims` has programs for the front of PATH that
hand themselves over, with their files, variables and arguments, and end with the exit code. If a shim is
killed, so is what it has handed over. `package_plugin` is one of them: the plugin of the Pulumi package. The
shim `python3`, which Pulumi's language host runs, hands over Pulumi programs; it has a recorded answer of
`pip list`, and runs all other commands in a Python of their own.
"""

import atexit
import gc
import marshal
import os
import platform
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import attrs

_ROOT = Path(__file__).parents[1]
_MODULES = (
    *("pulumi", "pulumi_kafka", "headwater.pulumi.program", "headwater.pulumi.package"),
    *("concurrent.futures.thread", "argparse"),
)
_EXECUTOR = "pulumi-language-python-exec"
_PLUGIN = "pulumi-resource-headwater"
_SOCKET = "socket"
_LENGTH_BYTES = 8
PIP_LIST = ("-m", "pip", "list", "-v", "--format", "json")
# Without `site` and variables, Python starts in a hundredth of a second.
_HEAD = f"#!{sys.executable} -IS\n"
_PYTHON = f"""
import os, sys
if sys.argv[1:] == ["--version"]:
    os.write(1, b"Python {platform.python_version()}\\n")
    os._exit(0)
if sys.argv[1:] == {list(PIP_LIST)}:
    with open("ANSWER_FILE", "rb") as answer:
        os.write(1, answer.read())
    os._exit(0)
if not any(each.endswith({_EXECUTOR!r}) for each in sys.argv[1:]):
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
"""
# `socket` would import modules that take longer than the rest.
_HAND_OVER = f"""
import _socket, marshal, os, sys
folder, name = os.path.split(os.path.abspath(__file__))
connection = _socket.socket(_socket.AF_UNIX)
connection.connect(os.path.join(folder, {_SOCKET!r}))
request = marshal.dumps((name, sys.argv[1:], dict(os.environ), os.getcwd()))
files = b"".join(file.to_bytes(4, sys.byteorder) for file in (0, 1, 2))
rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)]
connection.sendmsg([len(request).to_bytes({_LENGTH_BYTES}, "big")], rights)
connection.sendall(request)
os._exit(int.from_bytes(connection.recv(1) or b"\\x46", "big"))
"""


def headwater() -> Path:
    """Return the command `headwater`, whose modules are imported already."""
    return folder_of_shims() / "headwater"


def package_plugin() -> Path:
    """Return the plugin of the Pulumi package, whose modules are imported already."""
    return folder_of_shims() / _PLUGIN


@cache
def pip_list() -> bytes:
    """Return the answer of `pip list` as the language host runs it."""
    return subprocess.run([sys.executable, *PIP_LIST], stdout=subprocess.PIPE, check=True).stdout


@cache
def folder_of_shims() -> Path:
    """Return the folder of the shims; their programs end with this process."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "list.json").write_bytes(pip_list())
    python = _PYTHON.replace("ANSWER_FILE", str(folder / "list.json"))
    shims = {"headwater": _HAND_OVER, _PLUGIN: _HAND_OVER, "python3": python + _HAND_OVER}
    for name, text in ((name, _HEAD + text) for name, text in shims.items()):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-P", __file__, folder / _SOCKET],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(_end, server)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return folder


def _end(server: "subprocess.Popen[bytes]") -> None:
    server.communicate()  # it ends at the end of its input, also if this process is killed


@attrs.frozen
class _Program:
    """What a shim has handed over."""

    name: str
    arguments: Sequence[str]
    variables: Mapping[str, str]
    folder: str
    files: Sequence[int]
    """Standard input, output and error."""

    def run(self) -> None:
        """Run it in this process, which ends with it."""
        for number, file in enumerate(self.files):
            os.dup2(file, number)
            os.close(file)
        os.environ.clear()
        os.environ.update(self.variables)
        os.chdir(self.folder)
        if self.name == "headwater":
            self._run_headwater()
        elif self.name == _PLUGIN:
            sys.argv = [self.name, *self.arguments]
            import_module("headwater.pulumi.package").run_plugin()
        else:
            self._run_pulumi_program()

    def _run_headwater(self) -> None:
        sys.argv = [self.name, *self.arguments]
        sys.path.insert(0, self.folder)
        import_module("headwater.cli.main").main(prog_name=self.name)

    def _run_pulumi_program(self) -> None:
        executor = next(n for n, each in enumerate(self.arguments) if each.endswith(_EXECUTOR))
        sys.argv = list(self.arguments[executor:])
        sys.path.insert(0, str(Path(sys.argv[0]).parent))
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]  # files of this process
        runpy.run_path(sys.argv[0], run_name="__main__")


def _serve(address: str) -> _Program | None:
    """Fork for each program. Return it in the child; return None when the owner of this process has ended."""
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(address)
        listener.listen()
        selector.register(listener, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        os.write(1, b"ready\n")
        running: dict[int, _Running] = {}
        while True:
            file = selector.select()[0][0].fd  # the others are ready next time, if they are still open
            if file == 0:
                return None
            if file == listener.fileno():
                connection, _ = listener.accept()
                program = _received(connection)
                child = os.fork()
                if not child:
                    return program
                for each in program.files:
                    os.close(each)
                started = _Running(child, os.pidfd_open(child), connection)
                for each in (started.process, connection.fileno()):
                    running[each] = started
                    selector.register(each, selectors.EVENT_READ)
            else:
                ended = running[file]
                for each in (ended.process, ended.connection.fileno()):
                    selector.unregister(each)
                    del running[each]
                ended.finish()


@attrs.frozen
class _Running:
    """A program that runs; `process` is a file that is readable when it has ended."""

    pid: int
    process: int
    connection: socket.socket

    def finish(self) -> None:
        """Report the exit code of the program; kill it if it still runs, because the shim has ended."""
        signal.pidfd_send_signal(self.process, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        with self.connection:
            os.close(self.process)
            try:
                self.connection.sendall(bytes([code % 256]))
            except OSError:
                return  # the shim was killed


def _received(connection: socket.socket) -> _Program:
    head, files, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, 3)
    length = int.from_bytes(head, "big")
    text = b""
    while len(text) < length:
        text += connection.recv(length - len(text))
    name, arguments, variables, folder = marshal.loads(text)  # noqa: S302 - written by a shim
    return _Program(name, arguments, variables, folder, files)


def _import() -> None:
    """Import what the programs import, also during their runs."""
    commands = import_module("headwater.cli.main")._COMMANDS
    for name in (*_MODULES, *(command.module for command in commands.values())):
        import_module(name)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def _exit_after(run: Callable[[], None]) -> NoReturn:
    """Run a program and end this process as Python does, but without deleting all modules and their objects.

    They are in memory of the server, which would be copied for that.
    """
    code = 0
    try:
        run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:  # noqa: BLE001 - the process ends
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as Python does at its end
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120  # as Python
    os._exit(code)


if __name__ == "__main__":
    _import()
    if (_program := _serve(sys.argv[1])) is not None:
        _exit_after(_program.run)
