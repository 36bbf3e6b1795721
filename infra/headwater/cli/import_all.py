"""`headwater import --all`: create a document for each application of a cluster.

Without a cluster, Strimzi's resources show applications: `KafkaTopic` topics, the ACLs of `KafkaUser` groups.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
import click

from headwater.cli.console import print_line, print_problems, write
from headwater.cli.import_details import complete_description, missing_details
from headwater.cli.imported_documents import file_names, observed_document, pushed_application
from headwater.describe import UnusableTopologyError, pushed_topology
from headwater.kafka import Connection
from headwater.kafka.command_line import NamedCluster
from headwater.kafka.kafka_reader import survey
from headwater.model.cluster import GroupFacts, LiveTopic, Survey
from headwater.model.policies import matches_any
from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError, Severity, errors
from headwater.model.topology import UnknownDetails
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.adoption import FoundApplication, Recognized, SkipReason, recognize
from headwater.planner.evidence.names import INTERNAL_NAMES
from headwater.planner.phrases import counted, first_names
from headwater.report.markdown import printable
from headwater.spec import load_documents
from headwater.spec.files import find, read
from headwater.spec.locations import mapping_of
from headwater.spec.scalars import config_text
from headwater.spec.topic_configs import broker_text
from headwater.spec.yaml_text import read_yaml

_API = "kafka.strimzi.io/"
_READING = {"Read", "All"}


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
        seen, problems = _strimzi_survey(request.strimzi)
    else:
        connected = request.cluster.connection()
        seen = survey(connected, INTERNAL_NAMES, request.application_ids)
    found = recognize(seen, request.application_ids, request.internal_topics)
    imported = {
        application.id: _build_document(application, seen.cluster_id, request, connected)
        for application in found.applications
    }
    documents = {id_: each.text for id_, each in imported.items()}
    if request.folder is None:
        write("---\n".join(documents.values()), None)
        outcomes: Mapping[str, Outcome] = {}
    else:
        outcomes = _write_files(request.folder, documents, force=request.force)
    notes = _strimzi_notes(seen) if request.strimzi else _visibility_notes(seen)
    for line in (*_summary_lines(found, outcomes, imported), *notes):
        print_line(printable(line), err=request.folder is None)
    print_problems(problems, after_result=True)
    return bool(seen.topics) and not any(outcome.is_refused for outcome in outcomes.values())


def _strimzi_survey(paths: Sequence[Path]) -> tuple[Survey, tuple[Problem, ...]]:
    """Return topics and groups of the resources in files and folders, such as `kubectl get -o yaml` writes.

    A user with permission to read a group belongs to an application, which reads the user's topics. Resources
    of other kinds are skipped. A `KafkaTopic` without a partition count is a warning, and is left out. Raises
    `ProblemsError` if a file cannot be read.
    """
    files, found = find(paths)
    problems = list(found)
    topics: dict[str, LiveTopic] = {}
    groups: dict[str, GroupFacts] = {}
    for file in files:
        for resource in _read_resources(file, problems):
            match resource.get("kind"):
                case "KafkaTopic":
                    topic = _read_topic(resource)
                    if topic is None:
                        problems.append(_without_partitions(resource, file))
                    else:
                        topics[topic.name] = topic
                case "KafkaUser":
                    for group in _readable_groups(resource):
                        read_by_others = groups.get(group.id, group).subscribed
                        groups[group.id] = attrs.evolve(group, subscribed=group.subscribed | read_by_others)
    if errors(problems):
        raise ProblemsError(problems)
    reading = {
        id_: attrs.evolve(
            group,
            subscribed=frozenset(name for name in topics if matches_any(name, group.read)),
        )
        for id_, group in groups.items()
    }
    return Survey("", topics, reading), tuple(problems)


def _read_resources(file: Path, problems: list[Problem]) -> Iterator[Mapping[str, Any]]:
    text = read(file)
    if isinstance(text, Problem):
        problems.append(text)
        return
    documents, faults = read_yaml(text, str(file))
    problems.extend(faults)
    for document in documents:
        data = document.data
        items = data.get("items") if isinstance(data, dict) and data.get("kind") == "List" else [data]
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and str(item.get("apiVersion", "")).startswith(_API):
                yield item


def _read_topic(resource: Mapping[str, Any]) -> LiveTopic | None:
    spec = mapping_of(resource.get("spec"))
    name = spec.get("topicName") or mapping_of(resource.get("metadata")).get("name")
    partitions, replicas = spec.get("partitions"), spec.get("replicas")
    if not isinstance(partitions, int) or not isinstance(name, str):
        return None
    config = {
        key: broker_text(key, config_text(value))
        for key, value in mapping_of(spec.get("config")).items()
        if isinstance(value, str | int | float)
    }
    return LiveTopic(name, "", partitions, replicas if isinstance(replicas, int) else 0, config)


def _readable_groups(resource: Mapping[str, Any]) -> Iterator[GroupFacts]:
    """Yield the groups that a user may read by name, with the topics that the user may read.

    `v1beta2` also has `operation`, one for each rule.
    """
    names: defaultdict[str, set[str]] = defaultdict(set)
    authorization = mapping_of(mapping_of(resource.get("spec")).get("authorization"))
    acls = authorization.get("acls")
    for acl in acls if isinstance(acls, list) else ():
        rule = mapping_of(acl)
        target, given = mapping_of(rule.get("resource")), rule.get("operations", rule.get("operation"))
        name, operations = target.get("name"), set(map(str, given if isinstance(given, list) else [given]))
        if isinstance(name, str) and rule.get("type", "allow") == "allow" and _READING & operations:
            star = "*" if target.get("patternType") == "prefix" and not name.endswith("*") else ""
            names[str(target.get("type"))].add(f"{name}{star}")
    topics = frozenset(names["topic"])
    yield from (GroupFacts(id=name, subscribed=topics) for name in sorted(names["group"]) if "*" not in name)


def _without_partitions(resource: Mapping[str, Any], file: Path) -> Problem:
    name = mapping_of(resource.get("metadata")).get("name", "")
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary=f"KafkaTopic {name} has no partition count.",
        topic=str(name) or None,
        expected="`spec.partitions`, a number",
        found="none",
        why="The count is the brokers' default, or the count of a topic that existed before. The imported "
        "documents do not have this topic.",
        fix="Add `spec.partitions`, or import from the cluster (`--bootstrap-server`).",
        location=Location(str(file)),
        severity=Severity.WARNING,
    )


_FEW = 20


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
            write(text, file)
            outcomes[id_] = Outcome(f"{file}", file=file)
    return outcomes


def _declared_files(folder: Path) -> Mapping[str, Path]:
    """Return application id → file for the documents below the folder; raises `ProblemsError` for errors."""
    if not folder.is_dir() or not find([folder])[0]:
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
                yield f"  {'':{width}}  its topology was read from the brokers{_open_text(unknown)}"
    for id_ in found.stateless:
        yield f"  {id_} has no internal topics and needs no document."
    by_text = sorted(found.skipped, key=lambda each: (each.text, each.topic))
    for text, group in groupby(by_text, key=lambda each: each.text):
        names = [each.topic for each in group]
        yield f"Skipped {first_names(names, _FEW)}: {text}."
    reasons = {each.reason for each in found.skipped}
    if SkipReason.NO_GROUP in reasons:
        yield "To import an application without a group, use --application-id."
    if SkipReason.OTHER_SETTINGS in reasons:
        yield "To include a topic that Kafka Streams created before version 2.5, use --topic."


def _open_text(unknown: UnknownDetails) -> str:
    return "; the document lists what is unknown" if unknown else ""


def _from_code(application: FoundApplication, outcome: Outcome | None) -> str:
    """Return the command that replaces what is observed by the topology of the code."""
    file = f" -o {outcome.file}" if outcome is not None and outcome.file is not None else ""
    return f"headwater import --jar JAR --topology CLASS::METHOD --application-id {application.id}{file}"


def _strimzi_notes(seen: Survey) -> Iterator[str]:
    if not seen.topics:
        yield "The files have no KafkaTopic of Strimzi (`apiVersion: kafka.strimzi.io/…`)."


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
