"""Check what would stop a document later: operators, schemas, folders, output topics, user classes."""

import fcntl
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

import attrs
import structlog
from pyspark.sql import SparkSession

from headwater.compiler import build_nodes
from headwater.model.compiled import CompiledApplication
from headwater.model.nodes import NodeTopology, SinkNode
from headwater.model.problems import Problem, ProblemCode, ProblemsError, errors
from headwater.model.topology import Application, TopologyDocument
from headwater.spec.files import SCHEMA_FILE, read_confined
from headwater_spark.driver.active_client.membership import LockedFile
from headwater_spark.driver.spark_session.requirements import connect_session, session_problems
from headwater_spark.driver.threads.settings import thread_problems
from headwater_spark.engine.program import (
    SubtopologyProgram,
    build_programs,
    problems_of,
    registered_formats,
    schema_files,
)
from headwater_spark.engine.program.settings import DEAD_LETTERS
from headwater_spark.engine.program.user_code import (
    ClassRole,
    NamedClass,
    find_class_fault,
    load_class,
    named_classes,
)
from headwater_spark.engine.serdes import (
    CompilerUnavailableError,
    RegistryUnavailableError,
    schema_subject,
    schema_type,
)
from headwater_spark.worker.protobuf_schemas import compile_schema
from headwater_spark.worker.schema_registry import (
    URL,
    RegisteredSchemas,
    configured_registry,
    log_unread_fields,
)
from headwater_spark.worker.state_folders import create_private_folder

_log = structlog.get_logger(__name__)
_LOCK_FILE = "client.lock"


@attrs.frozen
class RunnableDocument:
    """A document that passed the checks: every operator has a behavior, every format can be read and written.

    `schemas` is schema file or registered format → text of the schema, compiled for Protobuf.
    """

    document: TopologyDocument
    nodes: NodeTopology
    schemas: Mapping[str, str] = attrs.field(factory=dict)

    def programs(self, compiled: CompiledApplication) -> tuple[SubtopologyProgram, ...]:
        schema_of = RegisteredSchemas(self.document.application.config.get(URL))
        return build_programs(
            self.document, self.nodes, compiled, self.schemas, schema_of, report_unread=log_unread_fields
        )


LatestSchemas = Callable[[Iterable[str], Application], Mapping[str, str]]
"""Formats with a schema registry, application → the latest schema of each format."""


def check_runnable(
    document: TopologyDocument, folder: Path = Path(), latest_schemas: LatestSchemas | None = None
) -> RunnableDocument:
    """Return `document` with its nodes and schemas; schema files are relative to `folder`.

    `latest_schemas` is used in place of the application's schema registry.

    Raises:
        ProblemsError: The document cannot run.
    """
    nodes = build_nodes(document)
    schemas = {}
    for name, kind in schema_files(nodes, document.application.config).items():
        text = _read_schema_file(folder, name)
        schemas[name] = _compile_file(name, text, document.application) if kind == "protobuf" else text
    latest = latest_schemas or _latest_schemas
    schemas |= latest(registered_formats(nodes, document.application.config), document.application)
    if wrong := (
        *errors(nodes.problems),
        *problems_of(document, nodes, schemas),
        *thread_problems(document.application),
    ):
        raise ProblemsError(wrong)
    return RunnableDocument(document, nodes, schemas)


@contextmanager
def checkpoint_lock(checkpoint: str, application: str) -> Iterator[LockedFile | None]:
    """Lock an application's checkpoint against other processes of this machine; yield the locked file.

    A second client on the same checkpoint would make Spark stop the queries of both, again and again. The
    operating system releases the lock of a process that dies. A checkpoint at a URL is not locked: None.

    Raises:
        ProblemsError: Another process holds the lock, or the folder cannot be used.
    """
    if "://" in checkpoint:
        yield None
        return
    folder = Path(checkpoint, application)
    path = folder / _LOCK_FILE
    try:
        create_private_folder(folder)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        problem = _unusable_folder("checkpoint", "--checkpoint", folder, application, error)
        raise ProblemsError([problem]) from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(file, 20, 0).decode(errors="replace").strip()
            raise ProblemsError([_already_running(application, folder, owner)]) from None
        try:
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        except OSError as error:  # the disk may be full
            problem = _unusable_folder("checkpoint", "--checkpoint", folder, application, error)
            raise ProblemsError([problem]) from None
        yield LockedFile.from_descriptor(file)
    finally:
        os.close(file)


def check_state_folder(folder: Path, application: str) -> None:
    """Create the folder of local state on this machine and check that it is writable.

    Raises:
        ProblemsError: It is not.
    """
    try:
        create_private_folder(folder)
        with TemporaryFile(dir=folder, buffering=0) as file:
            file.write(b"x")  # a full disk has files without content
    except OSError as error:
        problem = _unusable_folder("state", "--state-dir", folder, application, error)
        raise ProblemsError([problem]) from None


class TopicIds(Protocol):
    """Reads the ids of topics."""

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return topic → id, of existing topics (`headwater.kafka.ClusterReader`)."""
        ...


def warn_missing_outputs(nodes: NodeTopology, application: Application, cluster: TopicIds) -> None:
    """Log a warning for each output topic that does not exist; brokers may create it on the first write.

    Without permission to describe topics nothing is logged: the first write will report it.
    """
    names = sorted(set(_output_topics(nodes, application)))
    try:
        existing: Collection[str] = cluster.topic_ids(names)
    except ProblemsError:
        return
    for name in names:
        if name not in existing:
            _log.warning(
                "output topic does not exist",
                topic=name,
                effect="records fail unless the brokers create the topic",
            )


def warn_standby_copies(application: Application) -> None:
    """Log a warning if the application requires copies of its state, which are not kept."""
    text = application.config.get("num.standby.replicas", "0")
    if int(text) > 0:
        _log.warning(
            "standby copies are not kept",
            config=f"num.standby.replicas={text}",
            effect="a task that moves is restored from its changelog topics",
        )


def check_session(spark: SparkSession, application: str) -> None:
    """Check the settings of a session that runs.

    Raises:
        ProblemsError: An application cannot run with them.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise ProblemsError([connect_session(application)])
    context = spark.sparkContext
    conf = dict(context.getConf().getAll())
    if wrong := session_problems(application, master=str(context.master), conf=conf):
        raise ProblemsError(wrong)


ClassUse = tuple[str, ClassRole]
"""The name of a class, and what it is used for."""


def check_user_classes(spark: SparkSession, runnable: RunnableDocument) -> None:
    """Load the classes that the document names, on an executor if there are any.

    Raises:
        ProblemsError: Some classes cannot be loaded or used; one problem for each use.
    """
    context = spark.sparkContext

    def load_on_executor(uses: Sequence[ClassUse]) -> Iterable[tuple[ClassUse, str]]:
        context.setJobDescription(f"{runnable.document.application.id}: classes of the document")
        return context.parallelize([uses], 1).flatMap(class_failures).collect()

    if problems := class_problems(runnable, load_on_executor):
        raise ProblemsError(problems)


def class_problems(
    runnable: RunnableDocument, load: Callable[[Sequence[ClassUse]], Iterable[tuple[ClassUse, str]]]
) -> list[Problem]:
    """Return a problem for each use of a class that cannot be loaded, or that cannot be used.

    `load` is `class_failures`, or calls it in another process.
    """
    application = runnable.document.application
    named = tuple(named_classes(runnable.nodes, application))
    uses = tuple(dict.fromkeys((each.name, each.role) for each in named))
    failures = dict(load(uses)) if uses else {}
    return [
        _class_not_loaded(application.id, each, failure)
        for each in named
        if (failure := failures.get((each.name, each.role))) is not None
    ]


def class_failures(uses: Sequence[ClassUse]) -> Iterator[tuple[ClassUse, str]]:
    """Yield (use, reason) of the classes that cannot be loaded in this process, or that cannot be used."""
    for name, role in uses:
        try:
            fault = find_class_fault(load_class(name), role)
        except Exception as error:  # noqa: BLE001 - importing a user's module may raise anything
            fault = f"{type(error).__name__}: {error}"
        if fault is not None:
            yield (name, role), fault


def _read_schema_file(folder: Path, name: str) -> str:
    content = read_confined(folder, name, SCHEMA_FILE, code=ProblemCode.NOT_RUNNABLE)
    if isinstance(content, str):
        return content
    if content is not None:
        raise ProblemsError([content])
    raise ProblemsError(
        [
            Problem(
                code=ProblemCode.NOT_RUNNABLE,
                summary=f"Schema file {name} is outside of the document's folder.",
                expected="a file in or below the document's folder",
                found=name,
                why="A document must not be able to read any file of this machine.",
                fix="Move the schema file into the document's folder.",
            )
        ]
    )


def _compile_file(name: str, text: str, application: Application) -> str:
    try:
        return compile_schema(text)
    except CompilerUnavailableError as error:
        raise ProblemsError([compiler_missing(name, str(error), application)]) from None
    except ValueError as error:
        raise ProblemsError(
            [
                Problem(
                    code=ProblemCode.UNSUPPORTED_FORMAT,
                    summary=f"The schema file {name} cannot be used: {error}.",
                    expected="a Protobuf schema that imports no other file",
                    found=name,
                    why="Records cannot be read or written without it.",
                    fix="Correct the format's name, or its schema file.",
                )
            ]
        ) from None


def _latest_schemas(formats: Iterable[str], application: Application) -> dict[str, str]:
    """Return the latest schema of each subject; the application writes with it until it stops."""
    schemas, problems = {}, []
    for name in formats:
        try:
            source = configured_registry(application.config)
            found = None if source is None else source.latest(schema_subject(name) or "", schema_type(name))
            reason = "no registry is configured" if source is None else "the registry has no such subject"
        except CompilerUnavailableError as error:
            problems.append(compiler_missing(name, str(error), application))
            continue
        except (RegistryUnavailableError, ValueError) as error:
            found, reason = None, str(error)
        if found is None:
            problems.append(_no_schema(name, reason, application))
        else:
            schemas[name] = found
    if problems:
        raise ProblemsError(problems)
    return schemas


def _output_topics(nodes: NodeTopology, application: Application) -> Iterator[str]:
    """Yield the topics of sinks that are not internal, and the dead letter topic."""
    internal = {topic.name for topic in nodes.repartition_topics}
    for node in nodes.nodes:
        if isinstance(node, SinkNode) and node.topic is not None and node.topic not in internal:
            yield node.topic
    if DEAD_LETTERS in application.config:
        yield application.config[DEAD_LETTERS]


def _no_schema(name: str, reason: str, application: Application) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application.id,
        summary=f"No schema found for format {name}.",
        expected=f"a subject of a schema registry with a schema of the type {schema_type(name)}",
        found=reason,
        why="Without the schema, records of that format cannot be written.",
        fix=f"Set {URL} or SCHEMA_REGISTRY_URL to the registry's address, and register the schema there.",
    )


def compiler_missing(name: str, reason: str, application: Application) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application.id,
        summary=f"The Protobuf schema of {name} cannot be compiled here.",
        expected="protoc of the package grpcio-tools",
        found=reason,
        why="Records cannot be read or written without it. Executors compile the schemas of a registry, too.",
        fix="Run `pip install 'headwater[protobuf] @ URL_OF_THE_WHEEL'` on this machine and on the "
        "executors. If it is installed, protoc needs a writable folder for temporary files, and enough "
        "memory.",
    )


def _unusable_folder(what: str, option: str, folder: Path, application: str, error: OSError) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"The {what} folder cannot be used.",
        expected="a folder that this process can create and write to, and that no other user can write to",
        found=f"{folder}: {error.strerror}",
        why="Without it no record can be processed. Other users could run code as this one by writing there.",
        fix=f"Choose another folder by {option}, or correct the permissions of this one. If its disk is "
        "full, free space there.",
    )


def _already_running(application: str, folder: Path, owner: str) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        summary=f"{application} is already running with the same checkpoint.",
        application=application,
        expected=f"{folder} used by this process alone",
        found=f"process {owner or 'unknown'}",
        why="One process drives all tasks of an application; executors add capacity.",
        fix="Stop the other process first. A standby client needs its own --checkpoint and --state-dir.",
    )


def _class_not_loaded(application: str, named: NamedClass, failure: str) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"The class {named.name} of {named.user} cannot be used.",
        node=named.user,
        expected=f"a {named.role.value} that Python can import where the tasks run",
        found=failure,
        why="The first record would fail, and every attempt after it.",
        fix="Correct the name or the class, or make the module available: by PYTHONPATH on this machine, on "
        "a cluster by --py-files of spark-submit or `--conf spark.submit.pyFiles=...`.",
        location=named.at,
    )
