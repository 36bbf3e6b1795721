"""`headwater import --jar`: create the document of an application from its code."""

import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import attrs
import click

from headwater.cli.console import write_text
from headwater.cli.import_details import differences_from_cluster, with_owners
from headwater.cli.inputs import NEED_A_CLUSTER, read_snapshot
from headwater.cli.java_export import (
    ExportRequest,
    absolute_class_path,
    export_problem,
    no_java,
    run_export,
    unreadable_file,
)
from headwater.compiler import compile_documents
from headwater.kafka.command_line import NamedCluster
from headwater.kafka.connection import read_properties
from headwater.kafka.input_files import LARGEST_SETTINGS, LARGEST_TEXT, read_file, read_text
from headwater.model.problems import Problem, ProblemCode, Severity, errors, first_names, shorten_text
from headwater.spec import load_text
from headwater.spec.misspelled_configs import find_passed_config
from headwater.toolchain.machine import JAVA
from headwater.toolchain.streams_library import ensure_streams_library


@attrs.frozen(kw_only=True)
class JarImport:
    """The arguments of the command."""

    jar: Path
    topology: str
    class_path: Sequence[str]
    properties: Path | None
    config: Mapping[str, str]
    timeout_seconds: float
    cluster: NamedCluster
    output: Path | None


def import_jar(arguments: JarImport) -> tuple[Problem, ...]:
    """Write the document if the code could be exported; return all problems.

    Raises:
        ProblemsError: The cluster could not be read.
        click.ClickException: The library could not be built, or the document not be written.
    """
    java = JAVA.locate()
    if java is None:
        return (no_java(),)
    request = ExportRequest(
        jar=arguments.jar.absolute(),
        target=arguments.topology,
        class_path=[absolute_class_path(entry) for entry in arguments.class_path],
        properties=arguments.properties,
        config=arguments.config,
        timeout_seconds=arguments.timeout_seconds,
    )
    ignored = framework_problems(arguments.properties, arguments.config) if arguments.properties else ()
    existing = _read_existing(arguments.output)
    try:
        result = run_export(java, ensure_streams_library(), request, existing, arguments.output)
    except (OSError, zipfile.BadZipFile) as error:
        return (unreadable_file(str(arguments.jar), str(error)),)
    if result.document is None:
        return (export_problem(request, result), *ignored)
    problems = _check_document(result.document, arguments)
    if not errors(problems):
        write_text(result.document, arguments.output)
    return (*problems, *ignored)


def framework_problems(properties: Path, config: Collection[str] = ()) -> tuple[Problem, ...]:
    """Return a warning if a properties file has keys that only a framework reads, such as Spring's.

    `config` are keys of Kafka that are set otherwise. Values are not shown: they may be secret.
    """
    try:
        text = read_file(properties, LARGEST_SETTINGS).decode(errors="replace")
    except OSError as error:
        raise _not_readable(properties, error) from None
    given = {*read_properties(text), *config}
    passed = {key: name for key in given if (name := find_passed_config(key)) and name not in given}
    name = next((name for name in passed.values() if not name.startswith(_OF_CONNECTIONS)), None)
    if name is None:
        return ()
    return (
        Problem(
            code=ProblemCode.CONFIG_HAS_NO_EFFECT,
            summary=f"{properties} has keys of a framework, which the export does not read.",
            expected=f"`{shorten_text(name)}`",
            found=first_names([f"`{shorten_text(key)}`" for key in sorted(passed)], _MOST_KEYS),
            why="The framework passes them to Kafka Streams when it starts; the export does not start it.",
            fix=f"Set what decides topics by Kafka's keys: `--config {shorten_text(name)}=VALUE`. "
            "Or export the topology in a test that starts the framework.",
            severity=Severity.WARNING,
        ),
    )


_MOST_KEYS = 5
_OF_CONNECTIONS = ("bootstrap.servers", "sasl.", "security.", "ssl.")
"""The export connects to no broker, and passwords do not belong on a command line."""


def _check_document(text: str, arguments: JarImport) -> tuple[Problem, ...]:
    """Return the problems of the document and, with a cluster, its differences from the topics there."""
    loaded = load_text(text, str(arguments.output or "document"))
    if not loaded.documents:
        return loaded.problems
    connection = arguments.cluster.named_connection()
    if connection is None:
        compiled = compile_documents(loaded.documents, {})
        found = [
            problem for each in compiled for problem in each.problems if problem.code not in NEED_A_CLUSTER
        ]
        return (*loaded.problems, *found)
    snapshot = read_snapshot(loaded.documents, connection, protocol_is_known=False)
    compiled = compile_documents(loaded.documents, snapshot.partitions)
    found = [problem for each in compiled for problem in each.problems]
    owned = with_owners(compiled, loaded.documents, snapshot, connection)
    found += differences_from_cluster(compiled, loaded.documents, owned)
    return (*loaded.problems, *found)


def _read_existing(output: Path | None) -> str | None:
    if output is None or str(output) == "-" or not output.exists():
        return None
    try:
        return read_text(output, LARGEST_TEXT)
    except (OSError, UnicodeDecodeError) as error:
        raise _not_readable(output, error) from None


def _not_readable(file: Path, error: OSError | UnicodeDecodeError) -> click.ClickException:
    reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
    return click.ClickException(f"{file} cannot be read: {reason}.")
