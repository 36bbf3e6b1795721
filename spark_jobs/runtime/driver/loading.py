"""A topology document as something that runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from infra.compiler import build_nodes
from infra.model.compiled import CompiledApplication
from infra.model.nodes import NodeTopology
from infra.model.problems import Problem, ProblemCode, ProblemsError, errors
from infra.model.topology import Application, TopologyDocument
from infra.spec import load_documents
from spark_jobs.runtime.engine.program import (
    SubtopologyProgram,
    build_programs,
    problems_of,
    registered_formats,
    schema_files,
)
from spark_jobs.runtime.engine.serdes import RegistryUnavailableError, subject
from spark_jobs.runtime.worker.schema_registry import URL, registry


@attrs.frozen
class Runnable:
    """One document, checked: every operator says what it does, every format can be read and written."""

    document: TopologyDocument
    nodes: NodeTopology
    schemas: Mapping[str, str] = attrs.field(factory=dict)

    def programs(self, compiled: CompiledApplication) -> tuple[SubtopologyProgram, ...]:
        return build_programs(self.document, self.nodes, compiled, self.schemas)


def load(file: Path) -> Runnable:
    """Read the only document of `file`; schema files lie relative to it. Raises `ProblemsError`."""
    loaded = load_documents([file])
    if wrong := errors(loaded.problems):
        raise ProblemsError(wrong)
    if len(loaded.documents) != 1:
        raise ProblemsError([_not_one(file, len(loaded.documents))])
    return runnable(loaded.documents[0], file.parent if file.is_file() else file)


def runnable(document: TopologyDocument, folder: Path = Path()) -> Runnable:
    """Check a document; schema files are looked for in `folder`. Raises `ProblemsError`."""
    nodes = build_nodes(document)
    schemas = {}
    for name in schema_files(nodes, document.application.config):
        schemas[name] = _text(folder / name)
    schemas |= _registered(registered_formats(nodes, document.application.config), document.application)
    if wrong := (*errors(nodes.problems), *problems_of(document, nodes, schemas)):
        raise ProblemsError(wrong)
    return Runnable(document, nodes, schemas)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise ProblemsError(
            [
                Problem(
                    code=ProblemCode.NOT_RUNNABLE,
                    summary=f"Schema file {file} cannot be read.",
                    expected="a schema beside the document",
                    found=str(reason),
                    why="Without it nothing of that format can be read or written.",
                    fix="Correct the path; it counts from the document's folder.",
                )
            ]
        ) from None


def _registered(formats: Iterable[str], application: Application) -> dict[str, str]:
    """The latest schema of each subject: what is written is written with it until the application ends."""
    schemas, problems = {}, []
    for name in formats:
        try:
            source = registry(application.config)
            found = None if source is None else source.latest(subject(name) or "")
            reason = "no registry is named" if source is None else "the registry has no such subject"
        except (RegistryUnavailableError, ValueError) as error:
            found, reason = None, str(error)
        if found is None:
            problems.append(_no_schema(name, reason, application))
        else:
            schemas[name] = found
    if problems:
        raise ProblemsError(problems)
    return schemas


def _no_schema(name: str, reason: str, application: Application) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application.id,
        summary=f"The schema of format {name} cannot be had.",
        expected="a subject of a schema registry with an Avro schema",
        found=reason,
        why="Without it nothing of that format can be written.",
        fix=f"Set {URL} or SCHEMA_REGISTRY_URL to the registry's address, and register the schema there.",
    )


def _not_one(file: Path, found: int) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        summary="One application runs at a time.",
        expected="one document",
        found=f"{found} in {file}",
        why="Each application is a client of its own, with its own state, checkpoints and restarts.",
        fix="Name the file of one document; start the others beside it.",
    )
