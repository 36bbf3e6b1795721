"""The manifest: documents in one file, with the partition counts that they compile to."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headwater.agent.events import AgentEvent
from headwater.compiler import compile_documents
from headwater.kafka.input_files import LARGEST_REPORT, read_text
from headwater.model.compiled import CompiledApplication
from headwater.model.expansions import TopicCounts
from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.spec import parse_document
from headwater.spec.schema import topology_schemas

_SCHEMA = "agent-manifest.v1.schema.json"


def build_manifest(
    documents: Sequence[Mapping[str, Any]], compiled: Sequence[CompiledApplication], counts: TopicCounts
) -> Mapping[str, Any]:
    """Return the manifest of raw `documents`, compiled with the `counts` of existing topics."""
    read = {name for one in compiled for name in (*one.external_sources, *one.global_topics)}
    return {
        "manifestVersion": 1,
        "headwater": version("headwater"),
        "documents": list(documents),
        "sources": {name: counts[name] for name in sorted(read) if name in counts},
        "expected": {one.application.id: dict(sorted(expected_counts(one).items())) for one in compiled},
    }


def expected_counts(compiled: CompiledApplication) -> TopicCounts:
    """Return the counts of internal and managed sink topics."""
    internal = {topic.name: topic.partitions for topic in compiled.internal_topics}
    return internal | {sink.topic: sink.partitions for sink in compiled.sinks if sink.partitions}


class ManifestFile:
    """The documents of one manifest (`ports.Documents`); they do not change while the agent runs."""

    def __init__(self, path: Path) -> None:
        """Raises `ProblemsError` if it cannot be read, or this version computes other counts."""
        self._documents = _read_documents(path)

    def current(self) -> tuple[TopologyDocument, ...]:
        return self._documents

    def refresh(self) -> Sequence[AgentEvent]:
        return ()


def _read_documents(path: Path) -> tuple[TopologyDocument, ...]:
    document = _read_json(path)
    _check_schema(document, path)
    documents: list[TopologyDocument] = []
    problems: list[Problem] = []
    for number, data in enumerate(document["documents"]):
        # Locations are shown inside the manifest.
        parsed = parse_document(data, file=f"{path}#/documents/{number}")
        documents += parsed.documents
        problems += parsed.problems
    if errors(problems):
        raise ProblemsError(problems)
    compiled = compile_documents(documents, document["sources"])
    found = {one.application.id: dict(expected_counts(one)) for one in compiled}
    if found != document["expected"]:
        raise ProblemsError([_differing_manifest(path, document, found)])
    return tuple(documents)


def _read_json(path: Path) -> Any:  # noqa: ANN401 - checked by the schema
    try:
        return json.loads(read_text(path, LARGEST_REPORT))
    except (OSError, ValueError, RecursionError) as error:
        raise ProblemsError([_unreadable_manifest(path, str(error))]) from None


def _check_schema(document: Any, path: Path) -> None:  # noqa: ANN401 - checked here
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - reading documents brings it anyway

    schema = json.loads(topology_schemas().joinpath(_SCHEMA).read_text(encoding="utf-8"))
    faults = sorted(Draft202012Validator(schema).iter_errors(document), key=lambda fault: fault.json_path)
    if faults:
        raise ProblemsError(
            [_unreadable_manifest(path, f"{fault.json_path}: {fault.message}") for fault in faults]
        )


def _unreadable_manifest(path: Path, found: str) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary="The manifest cannot be read.",
        expected="what `headwater agent manifest` writes",
        found=found[:300],
        why="The agent would not know which topics to expand.",
        fix="Correct the path. Or write the file again from the documents: `headwater agent manifest FILES "
        f"--bootstrap-server BROKER --output {shlex.quote(str(path))}`; without a cluster, give the "
        "partition count of each source topic (`--partitions TOPIC=N`).",
        location=Location(str(path)),
    )


def _differing_manifest(path: Path, document: Mapping[str, Any], found: Mapping[str, TopicCounts]) -> Problem:
    ids = [
        id_
        for id_ in sorted({*document["expected"], *found})
        if document["expected"].get(id_) != found.get(id_)
    ]
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"This version of Headwater computes other counts than the manifest: {', '.join(ids)}.",
        expected=f"the counts of Headwater {document['headwater']}",
        found=f"other counts by Headwater {version('headwater')}",
        why="Topics would be expanded to counts that were not reviewed.",
        fix="Write the manifest again with this version, review the changes, and deploy both together.",
        location=Location(str(path)),
    )


def inline_document(data: Mapping[str, Any], texts: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a raw document that contains the text of the file that it names; `texts` is file name → text."""
    described = data.get("describe")
    if isinstance(described, str):
        return {**data, "describe": {"text": texts[described]}}
    if isinstance(described, Mapping) and "file" in described:
        rest = {key: value for key, value in described.items() if key != "file"}
        return {**data, "describe": {"text": texts[described["file"]], **rest}}
    return data


def named_file(data: Mapping[str, Any]) -> Iterable[str]:
    """Yield the name of the file that a raw document refers to, if any."""
    described = data.get("describe")
    if isinstance(described, str):
        yield described
    elif isinstance(described, Mapping) and "file" in described:
        yield described["file"]
