"""Why the code of an application could not be exported, as problems."""

from collections.abc import Callable, Mapping

from headwater.cli.java_export import ExportRequest, ExportResult
from headwater.model.problems import Problem, ProblemCode
from headwater.model.versions import SUPPORTED

_WHY = "Without the topology there is no document. Nothing was written."
_MOST_FRAMES = 8
_CALLERS = (
    "at io.headwater.streams.topology.",
    "at java.base/java.lang.reflect.",
    "at java.base/jdk.internal.reflect.",
)
_OLDEST, _NEWEST = SUPPORTED[0].release, SUPPORTED[-1].release


def no_java() -> Problem:
    """Return the problem that no `java` was found."""
    return _problem(
        "No `java` was found, which runs the code of the application.",
        "Java 11 or later, and at least the version for which the application was compiled",
        "neither JAVA_HOME nor PATH has it",
        "Install Java, or set JAVA_HOME.",
    )


def unreadable(file: str, reason: str) -> Problem:
    """Return the problem of a jar or a properties file that cannot be read."""
    return _problem(
        f"{file} cannot be read.", "a readable file", reason, "Correct the path, or build the file again."
    )


def export_problem(request: ExportRequest, result: ExportResult) -> Problem:
    """Return why there is no document."""
    return OUTCOMES.get(result.outcome, _refused)(request, result)


def _no_class(request: ExportRequest, result: ExportResult) -> Problem:
    return _problem(
        f"Class {result.detail} is not on the class path.",
        "a class of the jar, with its package",
        f"`--topology {request.target}` and {request.jar}",
        f"Correct the name; `jar tf {request.jar}` lists the classes. A class of another jar needs "
        "`--classpath`.",
    )


def _no_member(request: ExportRequest, result: ExportResult) -> Problem:
    owner, _, member = request.target.partition("::")
    candidates = f"`{owner}::{result.detail.replace(', ', f'`, `{owner}::')}`" if result.detail else ""
    return _problem(
        f"Class {owner} has no method or field {member} that builds a topology.",
        candidates or "a method without parameters, with Properties, a Map or a StreamsBuilder; or a field",
        f"`{member}`",
        "Choose one of them." if candidates else "Add a method that returns the Topology.",
    )


def _no_constructor(request: ExportRequest, result: ExportResult) -> Problem:
    return _problem(
        f"An object of {result.detail} cannot be created: it has no constructor without parameters.",
        "a static method, or a class with such a constructor",
        f"`--topology {request.target}`, which is not static",
        "Make the method static. If a framework creates the object, use `TopologyDocument.write` in a test.",
    )


def _no_topology(request: ExportRequest, result: ExportResult) -> Problem:
    return _problem(
        f"{request.target} does not return a topology.",
        "a Topology, a StreamsBuilder, or a Supplier, Callable or Function that returns one",
        result.detail,
        "Choose another method or field.",
    )


def _threw(request: ExportRequest, result: ExportResult) -> Problem:
    return _problem(
        f"{request.target} threw an exception.",
        "a topology",
        f"{_first_line(result.detail)}{_frames(result.trace)}",
        "Give the method the properties that it needs (`--properties`, `--config`). It must build the "
        "topology without a broker and without other services.",
    )


def _missing_dependency(request: ExportRequest, result: ExportResult) -> Problem:
    del request
    return _problem(
        "A class that the application needs is missing, or is of another version.",
        "all dependencies of the application",
        _first_line(result.detail) + _frames(result.trace),
        "Add the jars with `--classpath 'libs/*'`, in the versions of the application. "
        "`mvn dependency:copy-dependencies` copies them into target/dependency.",
    )


def _no_kafka_streams(request: ExportRequest, result: ExportResult) -> Problem:
    del result
    return _problem(
        "Kafka Streams is not on the class path.",
        f"kafka-streams and kafka-clients, {_OLDEST} to {_NEWEST}, in {request.jar} or in `--classpath`",
        "neither",
        "Add the jars of the application with `--classpath 'libs/*'`: the document depends on their version.",
    )


def _newer_java(request: ExportRequest, result: ExportResult) -> Problem:
    del request
    return _problem(
        "The application was compiled for a later version of Java.",
        "the Java version of the application, or a later one",
        _first_line(result.detail),
        "Set JAVA_HOME to a later version of Java.",
    )


def _unsupported(request: ExportRequest, result: ExportResult) -> Problem:
    del request
    return _problem(
        "The topology of this version of Kafka Streams cannot be read.",
        f"Kafka Streams {_OLDEST} to {_NEWEST}",
        _first_line(result.detail),
        "Import the text of `topology.describe()` instead: `headwater import --describe`. "
        "Or upgrade the application, or Headwater.",
    )


def _refused(request: ExportRequest, result: ExportResult) -> Problem:
    del request
    return _problem(
        "The document cannot be written.",
        "an application id in the properties, and a file that is the document of this application",
        _first_line(result.detail),
        "Set `--properties`, `--config application.id=ID` or `--application-id`, or write to another file.",
    )


def _exited(request: ExportRequest, result: ExportResult) -> Problem:
    return _problem(
        f"Java ended with exit code {result.detail} before {request.target} returned.",
        "a method that returns",
        _output(result) or "no output",
        "The method must not call System.exit. If Java itself failed, its output says why.",
    )


def _timeout(request: ExportRequest, result: ExportResult) -> Problem:
    return _problem(
        f"{request.target} has not returned within {request.timeout_seconds:g} s. Java was killed.",
        "a method that builds the topology and returns",
        _output(result) or "no output",
        "The method must not start the application or wait for other services. Or set a longer `--timeout`.",
    )


OUTCOMES: Mapping[str, Callable[[ExportRequest, ExportResult], Problem]] = {
    "no class": _no_class,
    "no member": _no_member,
    "no constructor": _no_constructor,
    "no topology": _no_topology,
    "threw": _threw,
    "missing dependency": _missing_dependency,
    "no kafka streams": _no_kafka_streams,
    "newer java": _newer_java,
    "unsupported": _unsupported,
    "exited": _exited,
    "timeout": _timeout,
}
"""Outcome of an export → the function that returns its problem; others refuse the request itself."""


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[0]


def _frames(trace: str) -> str:
    """Return the first frames of the application, without those that called its method."""
    lines = [line.strip() for line in trace.splitlines()[1:]]
    own = [line for line in lines if line and not line.startswith(_CALLERS)]
    return "".join(f"\n{line}" for line in own[:_MOST_FRAMES])


def _output(result: ExportResult) -> str:
    return f"output that ends with\n{result.output}" if result.output else ""


def _problem(summary: str, expected: str, found: str, fix: str) -> Problem:
    return Problem(
        code=ProblemCode.TOPOLOGY_NOT_EXPORTED,
        summary=summary,
        expected=expected,
        found=found,
        why=_WHY,
        fix=fix,
    )
