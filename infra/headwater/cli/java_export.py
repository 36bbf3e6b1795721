"""Run the program of the library for Kafka Streams that calls an application and writes its document.

The application is foreign code: it may print, exit, start threads or never return. The result is in files,
its output is discarded except for the end, and after the timeout its processes are killed. If code could not
be exported, `export_problem` says why.
"""

import os
import signal
import subprocess
import threading
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import attrs

from headwater.model.problems import Problem, ProblemCode
from headwater.model.versions import SUPPORTED

_MAIN = "io.headwater.streams.topology.ExportProgram"
KEPT_LINES = 20
_LONGEST_LINE = 500
_SECONDS_OF_READER = 5
_NESTED = ("BOOT-INF/", "WEB-INF/")
"""Folders of the classes and jars inside an executable jar of Spring Boot, or inside a web application."""
_WRITTEN = "written"

_WHY = "Without the topology there is no document. Nothing was written."
_MOST_FRAMES = 8
_CALLERS = (
    "at io.headwater.streams.topology.",
    "at java.base/java.lang.reflect.",
    "at java.base/jdk.internal.reflect.",
)
_OLDEST, _NEWEST = SUPPORTED[0].release, SUPPORTED[-1].release


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
    java: Path, library: Path, request: ExportRequest, existing: str | None = None, file: Path | None = None
) -> ExportResult:
    """Return the document; `existing` is the text of `file`, whose other sections are kept."""
    with TemporaryDirectory(prefix="headwater-export-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        document, result = folder / "document.yaml", folder / "result"
        result.mkdir()
        if existing is not None:
            document.write_text(existing, encoding="utf-8")
        jars = (str(library), *unpack_jars(request.jar, folder / "application"), *request.class_path)
        command = [
            *(str(java), "-cp", os.pathsep.join(jars), _MAIN, request.target, str(document), str(result)),
            str(request.properties.absolute()) if request.properties else "",
            *(f"{key}={value}" for key, value in request.config.items()),
        ]
        code, output = _run_program(command, folder, request.timeout_seconds)
        outcome = _read_text(result / "outcome")
        if not outcome:
            return ExportResult(
                outcome="timeout" if code is None else "exited", detail=str(code), output=output
            )
        return ExportResult(
            document=document.read_text(encoding="utf-8") if outcome == _WRITTEN else None,
            outcome=outcome,
            detail=_read_text(result / "detail").replace(str(document), str(file or "the document")),
            trace=_read_text(result / "trace"),
            output=output,
        )


def absolute_class_path(entry: str) -> str:
    """Return an entry of a class path for a process with another working folder; `*` stands for all jars."""
    return str(Path(entry).absolute())


def unpack_jars(jar: Path, folder: Path) -> Iterable[str]:
    """Return the class path of an application; Java does not read jars inside a jar.

    Raises `OSError` and `zipfile.BadZipFile` if the jar cannot be read.
    """
    if jar.is_dir():
        return (str(jar),)
    with zipfile.ZipFile(jar) as archive:
        nested = [name for name in archive.namelist() if name.startswith(_NESTED)]
        for name in nested:
            archive.extract(name, folder)
    inside = [folder / prefix for prefix in _NESTED if (folder / prefix).is_dir()]
    return (str(jar), *(str(part) for each in inside for part in (each / "classes", each / "lib" / "*")))


def _run_program(command: Sequence[str], folder: Path, timeout_seconds: float) -> tuple[int | None, str]:
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


def _read_text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def no_java() -> Problem:
    """Return the problem that no `java` was found."""
    return _export_error(
        "No `java` was found, which runs the code of the application.",
        "Java 11 or later, and at least the version for which the application was compiled",
        "neither JAVA_HOME nor PATH has it",
        "Install Java, or set JAVA_HOME.",
    )


def unreadable_file(file: str, reason: str) -> Problem:
    """Return the problem of a jar or a properties file that cannot be read."""
    return _export_error(
        f"{file} cannot be read.", "a readable file", reason, "Correct the path, or build the file again."
    )


def export_problem(request: ExportRequest, result: ExportResult) -> Problem:
    """Return why there is no document."""
    return OUTCOMES.get(result.outcome, _refused_export)(request, result)


def _no_class(request: ExportRequest, result: ExportResult) -> Problem:
    return _export_error(
        f"Class {result.detail} is not on the class path.",
        "a class of the jar, with its package",
        f"`--topology {request.target}` and {request.jar}",
        f"Correct the name; `jar tf {request.jar}` lists the classes. A class of another jar needs "
        "`--classpath`.",
    )


def _no_member(request: ExportRequest, result: ExportResult) -> Problem:
    owner, _, member = request.target.partition("::")
    candidates = f"`{owner}::{result.detail.replace(', ', f'`, `{owner}::')}`" if result.detail else ""
    return _export_error(
        f"Class {owner} has no method or field {member} that builds a topology.",
        candidates or "a method without parameters, with Properties, a Map or a StreamsBuilder; or a field",
        f"`{member}`",
        "Choose one of them." if candidates else "Add a method that returns the Topology.",
    )


def _no_constructor(request: ExportRequest, result: ExportResult) -> Problem:
    return _export_error(
        f"An object of {result.detail} cannot be created: it has no constructor without parameters.",
        "a static method, or a class with such a constructor",
        f"`--topology {request.target}`, which is not static",
        "Make the method static. If a framework creates the object, use `TopologyDocument.write` in a test.",
    )


def _no_topology(request: ExportRequest, result: ExportResult) -> Problem:
    return _export_error(
        f"{request.target} does not return a topology.",
        "a Topology, a StreamsBuilder, or a Supplier, Callable or Function that returns one",
        result.detail,
        "Choose another method or field.",
    )


def _thrown_exception(request: ExportRequest, result: ExportResult) -> Problem:
    return _export_error(
        f"{request.target} threw an exception.",
        "a topology",
        f"{_first_line(result.detail)}{_list_frames(result.trace)}",
        "Give the method the properties that it needs (`--properties`, `--config`). It must build the "
        "topology without a broker and without other services.",
    )


def _missing_dependency(request: ExportRequest, result: ExportResult) -> Problem:
    del request
    return _export_error(
        "A class that the application needs is missing, or is of another version.",
        "all dependencies of the application",
        _first_line(result.detail) + _list_frames(result.trace),
        "Add the jars with `--classpath 'libs/*'`, in the versions of the application. "
        "`mvn dependency:copy-dependencies` copies them into target/dependency.",
    )


def _no_kafka_streams(request: ExportRequest, result: ExportResult) -> Problem:
    del result
    return _export_error(
        "Kafka Streams is not on the class path.",
        f"kafka-streams and kafka-clients, {_OLDEST} to {_NEWEST}, in {request.jar} or in `--classpath`",
        "neither",
        "Add the jars of the application with `--classpath 'libs/*'`: the document depends on their version.",
    )


def _newer_java(request: ExportRequest, result: ExportResult) -> Problem:
    del request
    return _export_error(
        "The application was compiled for a later version of Java.",
        "the Java version of the application, or a later one",
        _first_line(result.detail),
        "Set JAVA_HOME to a later version of Java.",
    )


def _unsupported_version(request: ExportRequest, result: ExportResult) -> Problem:
    del request
    return _export_error(
        "The topology of this version of Kafka Streams cannot be read.",
        f"Kafka Streams {_OLDEST} to {_NEWEST}",
        _first_line(result.detail),
        "Import the text of `topology.describe()` instead: `headwater import --describe`. "
        "Or upgrade the application, or Headwater.",
    )


def _refused_export(request: ExportRequest, result: ExportResult) -> Problem:
    del request
    return _export_error(
        "The document cannot be written.",
        "an application id in the properties, and a file that is the document of this application",
        _first_line(result.detail),
        "Set `--properties`, `--config application.id=ID` or `--application-id`, or write to another file.",
    )


def _early_exit(request: ExportRequest, result: ExportResult) -> Problem:
    return _export_error(
        f"Java ended with exit code {result.detail} before {request.target} returned.",
        "a method that returns",
        _quote_output(result) or "no output",
        "The method must not call System.exit. If Java itself failed, its output says why.",
    )


def _no_answer(request: ExportRequest, result: ExportResult) -> Problem:
    return _export_error(
        f"{request.target} has not returned within {request.timeout_seconds:g} s. Java was killed.",
        "a method that builds the topology and returns",
        _quote_output(result) or "no output",
        "The method must not start the application or wait for other services. Or set a longer `--timeout`.",
    )


OUTCOMES: Mapping[str, Callable[[ExportRequest, ExportResult], Problem]] = {
    "no class": _no_class,
    "no member": _no_member,
    "no constructor": _no_constructor,
    "no topology": _no_topology,
    "threw": _thrown_exception,
    "missing dependency": _missing_dependency,
    "no kafka streams": _no_kafka_streams,
    "newer java": _newer_java,
    "unsupported": _unsupported_version,
    "exited": _early_exit,
    "timeout": _no_answer,
}
"""Outcome of an export → the function that returns its problem; others refuse the request itself."""


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[0]


def _list_frames(trace: str) -> str:
    """Return the first frames of the application, without those that called its method."""
    lines = [line.strip() for line in trace.splitlines()[1:]]
    own = [line for line in lines if line and not line.startswith(_CALLERS)]
    return "".join(f"\n{line}" for line in own[:_MOST_FRAMES])


def _quote_output(result: ExportResult) -> str:
    return f"output that ends with\n{result.output}" if result.output else ""


def _export_error(summary: str, expected: str, found: str, fix: str) -> Problem:
    return Problem(
        code=ProblemCode.TOPOLOGY_NOT_EXPORTED,
        summary=summary,
        expected=expected,
        found=found,
        why=_WHY,
        fix=fix,
    )
