"""`headwater import --all`: create a document for each application of a cluster, or of Strimzi's files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import attrs
import click

from headwater.cli.console import print_line, print_problems, write_text
from headwater.cli.import_details import complete_description, missing_details
from headwater.cli.import_strimzi import read_strimzi_survey, strimzi_notes
from headwater.cli.imported_documents import file_names, observed_document, pushed_application
from headwater.describe import UnusableTopologyError, pushed_topology
from headwater.kafka import Connection
from headwater.kafka.command_line import NamedCluster
from headwater.kafka.kafka_reader import survey_cluster
from headwater.model.cluster import Survey
from headwater.model.problems import Problem, ProblemCode, ProblemsError, errors, first_names
from headwater.model.topology import UnknownDetails
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.adoption import FoundApplication, Recognized, SkipReason, recognize_applications
from headwater.planner.evidence.names import INTERNAL_NAMES
from headwater.planner.phrases import counted
from headwater.report.markdown import printable
from headwater.spec import load_documents
from headwater.spec.files import find_files

_MOST_NAMES = 20
"""A line of the summary names so many topics at most."""


@attrs.frozen(kw_only=True)
class ImportRequest:
    """The arguments of the command.

    `application_ids` are applications without a group. `internal_topics` are internal topics that do not have
    the settings of internal topics.
    """

    cluster: NamedCluster
    application_ids: Sequence[str]
    internal_topics: Sequence[str]
    config: Mapping[str, str]
    kafka_streams: KafkaStreamsVersion | None
    folder: Path | None
    force: bool
    strimzi: Sequence[Path] = ()
    """Files with Strimzi's resources; empty = the cluster is read."""


@attrs.frozen
class ImportedDocument:
    """The text of a document. `unknown` None = it has the topics only, not the topology."""

    text: str
    unknown: UnknownDetails | None = None


@attrs.frozen
class Outcome:
    """The result for one document: its `file`, or the reason why it was not written."""

    text: str
    is_refused: bool = False
    is_declared: bool = False
    file: Path | None = None


def import_all(request: ImportRequest) -> bool:
    """Write the documents to the folder or to standard output; return whether all were written.

    Raises:
        ProblemsError: The cluster or the documents in the folder cannot be read.
        click.ClickException: The folder or a file cannot be written.
    """
    connected = None
    problems: tuple[Problem, ...] = ()
    if request.strimzi:
        seen, problems = read_strimzi_survey(request.strimzi)
    else:
        connected = request.cluster.connection()
        seen = survey_cluster(connected, INTERNAL_NAMES, request.application_ids)
    found = recognize_applications(seen, request.application_ids, request.internal_topics)
    imported = {
        application.id: _build_document(application, seen.cluster_id, request, connected)
        for application in found.applications
    }
    documents = {id_: each.text for id_, each in imported.items()}
    if request.folder is None:
        write_text("---\n".join(documents.values()), None)
        outcomes: Mapping[str, Outcome] = {}
    else:
        outcomes = _write_files(request.folder, documents, force=request.force)
    notes = strimzi_notes(seen) if request.strimzi else _visibility_notes(seen)
    for line in (*_summary_lines(found, outcomes, imported), *notes):
        print_line(printable(line), err=request.folder is None)
    print_problems(problems, after_result=True)
    return bool(seen.topics) and not any(outcome.is_refused for outcome in outcomes.values())


def _build_document(
    found: FoundApplication, cluster_id: str, request: ImportRequest, connected: Connection | None
) -> ImportedDocument:
    """Return a document with the topology that the brokers have, otherwise with the topics only."""
    reason = ""
    if found.streams_group is not None and connected is not None:
        try:
            nodes = pushed_topology(found.streams_group)
        except UnusableTopologyError as error:
            reason = error.reason
        else:
            described = pushed_application(found, nodes, request.config, request.kafka_streams)
            described, problems = complete_description(
                described, connected, f"{found.id}.yaml", assume_defaults=False
            )
            if all(problem.code is ProblemCode.MISSING_DETAIL for problem in errors(problems)):
                return ImportedDocument(described.document(missing_details(problems)), described.unknown)
            reason = f"the document would have errors: {errors(problems)[0].summary.rstrip('.')}"
    text = observed_document(found, cluster_id, request.config, request.kafka_streams, reason=reason)
    return ImportedDocument(text)


def _write_files(folder: Path, documents: Mapping[str, str], *, force: bool) -> Mapping[str, Outcome]:
    """Write the files, except for declared applications; return application id → outcome."""
    declared = _declared_files(folder)
    names = file_names(documents)
    outcomes = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be created: {error.strerror}.") from None
    for id_, text in documents.items():
        file = folder / names[id_]
        others = sorted(other for other, path in declared.items() if path == file and other != id_)
        if id_ in declared and not (force and declared[id_] == file and not others):
            outcomes[id_] = Outcome(f"already declared in {declared[id_]}", is_declared=True)
        elif others:
            outcomes[id_] = Outcome(f"not written: {file} declares {', '.join(others)}", is_refused=True)
        elif os.path.lexists(file) and not force:
            outcomes[id_] = Outcome(
                f"not written: {file} exists (use --force to overwrite it)", is_refused=True
            )
        else:
            write_text(text, file)
            outcomes[id_] = Outcome(f"{file}", file=file)
    return outcomes


def _declared_files(folder: Path) -> Mapping[str, Path]:
    """Return application id → file for the documents below the folder; raises `ProblemsError` for errors."""
    if not folder.is_dir() or not find_files([folder])[0]:
        return {}
    loaded = load_documents([folder])
    if errors(loaded.problems):
        raise ProblemsError(loaded.problems)
    return {document.application.id: Path(document.application.at.file) for document in loaded.documents}


def _summary_lines(
    found: Recognized, outcomes: Mapping[str, Outcome], imported: Mapping[str, ImportedDocument]
) -> Iterator[str]:
    """Yield lines about the applications and topics found."""
    topics = sum(len(application.topics) for application in found.applications)
    yield (
        f"Found {counted(len(found.applications), 'application')} with {counted(topics, 'internal topic')}."
    )
    width = max((len(application.id) for application in found.applications), default=0)
    for application in found.applications:
        outcome = outcomes.get(application.id)
        result = f"  → {outcome.text}" if outcome else ""
        yield f"  {application.id:{width}}  {_counts_text(application)}{result}"
        if outcome is None or not (outcome.is_refused or outcome.is_declared):
            unknown = imported[application.id].unknown
            if unknown is None:
                yield f"  {'':{width}}  complete it from its code: {_from_code(application, outcome)}"
            else:
                open_ = "; the document lists what is unknown" if unknown else ""
                yield f"  {'':{width}}  its topology was read from the brokers{open_}"
    for id_ in found.stateless:
        yield f"  {id_} has no internal topics and needs no document."
    by_text = sorted(found.skipped, key=lambda each: (each.text, each.topic))
    for text, group in groupby(by_text, key=lambda each: each.text):
        names = [each.topic for each in group]
        yield f"Skipped {first_names(names, _MOST_NAMES)}: {text}."
    reasons = {each.reason for each in found.skipped}
    if SkipReason.NO_GROUP in reasons:
        yield "To import an application without a group, use --application-id."
    if SkipReason.OTHER_SETTINGS in reasons:
        yield "To include a topic that Kafka Streams created before version 2.5, use --topic."


def _from_code(application: FoundApplication, outcome: Outcome | None) -> str:
    """Return the command that replaces what is observed by the topology of the code."""
    file = f" -o {outcome.file}" if outcome is not None and outcome.file is not None else ""
    return f"headwater import --jar JAR --topology CLASS::METHOD --application-id {application.id}{file}"


def _visibility_notes(seen: Survey) -> Iterator[str]:
    """Yield notes for a user who sees no topics or groups: without permissions, Kafka returns empty lists."""
    for what, visible in (("topic", seen.topics), ("group", seen.groups)):
        if not visible:
            yield f"No {what}s are visible. If the cluster has any, this user has no Describe permission."


def _counts_text(application: FoundApplication) -> str:
    partitions = sum(topic.partitions for topic in application.topics)
    sources = f"{counted(len(application.sources), 'source')}"
    return (
        f"{counted(len(application.topics), 'internal topic')}, {counted(partitions, 'partition')}, {sources}"
    )
