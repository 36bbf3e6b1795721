"""Run the program of the library for Kafka Streams that calls an application and writes its document.

The application is foreign code: it may print, exit, start threads or never return. The result is in files,
its output is discarded except for the end, and after the timeout its processes are killed.
"""

import os
import signal
import subprocess
import threading
import zipfile
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import attrs
import click

_MAIN = "io.headwater.streams.topology.ExportProgram"
KEPT_LINES = 20
_LONGEST_LINE = 500
_SECONDS_OF_READER = 5
_NESTED = ("BOOT-INF/", "WEB-INF/")
"""Folders of the classes and jars inside an executable jar of Spring Boot, or inside a web application."""
_WRITTEN = "written"


@attrs.frozen(kw_only=True)
class ExportRequest:
    """What to call: `target` is `class::method`, `class_path` has the jars besides the application's own."""

    jar: Path
    target: str
    class_path: Sequence[str] = ()
    properties: Path | None = None
    config: Mapping[str, str] = attrs.field(factory=dict)
    timeout_seconds: float = 60


@attrs.frozen(kw_only=True)
class ExportResult:
    """The document, or why there is none; `output` are the last lines that the application printed.

    `outcome` is a word of the Java program, or `exited` or `timeout`.
    """

    document: str | None = None
    outcome: str = _WRITTEN
    detail: str = ""
    trace: str = ""
    output: str = ""


def run_export(
    java: Path, library: Path, request: ExportRequest, existing: str | None = None
) -> ExportResult:
    """Return the document; `existing` is the text of an earlier one, whose other sections are kept."""
    with TemporaryDirectory(prefix="headwater-export-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        document, result = folder / "document.yaml", folder / "result"
        result.mkdir()
        if existing is not None:
            document.write_text(existing, encoding="utf-8")
        jars = (str(library), *unpacked(request.jar, folder / "application"), *request.class_path)
        command = [
            *(str(java), "-cp", os.pathsep.join(jars), _MAIN, request.target, str(document), str(result)),
            str(request.properties.absolute()) if request.properties else "",
            *(f"{key}={value}" for key, value in request.config.items()),
        ]
        code, output = _run(command, folder, request.timeout_seconds)
        outcome = _read(result / "outcome")
        if not outcome:
            return ExportResult(
                outcome="timeout" if code is None else "exited", detail=str(code), output=output
            )
        return ExportResult(
            document=document.read_text(encoding="utf-8") if outcome == _WRITTEN else None,
            outcome=outcome,
            detail=_read(result / "detail"),
            trace=_read(result / "trace"),
            output=output,
        )


def streams_library() -> Path:
    """Return the jar of the library; raises `click.ClickException` if it cannot be built."""
    from headwater.toolchain import ToolchainError  # noqa: PLC0415 - slow
    from headwater.toolchain.streams_library import ensure_streams_library  # noqa: PLC0415

    try:
        return ensure_streams_library()
    except ToolchainError as error:
        raise click.ClickException(str(error)) from None


def absolute_class_path(entry: str) -> str:
    """Return an entry of a class path for a process with another working folder; `*` stands for all jars."""
    return str(Path(entry).absolute())


def unpacked(jar: Path, folder: Path) -> Iterable[str]:
    """Return the class path of an application; Java does not read jars inside a jar.

    Raises:
        OSError, zipfile.BadZipFile: The jar cannot be read.
    """
    if jar.is_dir():
        return (str(jar),)
    with zipfile.ZipFile(jar) as archive:
        nested = [name for name in archive.namelist() if name.startswith(_NESTED)]
        for name in nested:
            archive.extract(name, folder)
    inside = [folder / prefix for prefix in _NESTED if (folder / prefix).is_dir()]
    return (str(jar), *(str(part) for each in inside for part in (each / "classes", each / "lib" / "*")))


def _run(command: Sequence[str], folder: Path, timeout_seconds: float) -> tuple[int | None, str]:
    """Return the exit code, None after the timeout, and the end of the output."""
    lines: deque[str] = deque(maxlen=KEPT_LINES)
    code: int | None = None
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        reader = threading.Thread(target=keep_last, args=(process.stdout, lines), daemon=True)
        reader.start()
        try:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout_seconds)
        finally:
            kill_group(process)
            reader.join(_SECONDS_OF_READER)
    return code, "\n".join(lines)


def keep_last(stream: IO[bytes] | None, lines: deque[str]) -> None:
    """Append what a process writes to the last lines, until it has closed the stream."""
    while stream and (line := stream.readline(_LONGEST_LINE)):
        lines.append(line.decode(errors="replace").rstrip())


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children, which may hold its output open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
