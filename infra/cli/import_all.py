"""`headwater import --all`: a document for each application of a cluster."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import attrs
import click

from infra.cli.console import write
from infra.cli.observed_documents import file_names, observed_document
from infra.model.problems import ProblemsError, errors
from infra.model.survey import Survey
from infra.observe import Connection
from infra.observe.command_line import named_connection
from infra.observe.surveyor import survey
from infra.planner.adoption import INTERNAL_NAMES, FoundApplication, Recognized, recognize
from infra.planner.wording import counted
from infra.report.printable import printable
from infra.spec import load_documents
from infra.spec.files import find

_FEW = 20


@attrs.frozen(kw_only=True)
class Order:
    """What the command line asks for. `named` are ids of applications whose group is gone.

    `vouched` are topics that are internal although they do not look so.
    """

    bootstrap_server: str | None
    command_config: Path | None
    named: Sequence[str]
    vouched: Sequence[str]
    config: Mapping[str, str]
    folder: Path | None
    force: bool


@attrs.frozen
class Outcome:
    """What became of a document: in which file it is, or why not."""

    text: str
    is_refused: bool = False


def import_all(order: Order) -> bool:
    """Write the documents, to the folder or to standard output; return whether each could be written.

    Raises `ProblemsError` when the cluster or the documents of the folder cannot be read.
    """
    connection = named_connection(order.bootstrap_server, order.command_config)
    seen = survey(connection or Connection.from_environment(os.environ), INTERNAL_NAMES, order.named)
    found = recognize(seen, order.named, order.vouched)
    documents = {
        application.id: observed_document(application, seen.cluster_id, order.config)
        for application in found.applications
    }
    if order.folder is None:
        write("---\n".join(documents.values()), None)
        outcomes: Mapping[str, Outcome] = {}
    else:
        outcomes = _into(order.folder, documents, force=order.force)
    for line in (*_told(found, outcomes), *_unseen(seen)):
        click.echo(printable(line), err=order.folder is None)
    return bool(seen.topics) and not any(outcome.is_refused for outcome in outcomes.values())


def _into(folder: Path, documents: Mapping[str, str], *, force: bool) -> Mapping[str, Outcome]:
    """Write files; return what became of each document. What is declared already is left alone."""
    declared = _declared(folder)
    names = file_names(documents)
    outcomes = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be made: {error.strerror}.") from None
    for id_, text in documents.items():
        file = folder / names[id_]
        others = sorted(other for other, path in declared.items() if path == file and other != id_)
        if id_ in declared and not (force and declared[id_] == file and not others):
            outcomes[id_] = Outcome(f"declared already in {declared[id_]}")
        elif others:
            outcomes[id_] = Outcome(f"not written: {file} declares {', '.join(others)}", is_refused=True)
        elif os.path.lexists(file) and not force:
            outcomes[id_] = Outcome(f"not written: {file} exists (--force overwrites it)", is_refused=True)
        else:
            write(text, file)
            outcomes[id_] = Outcome(f"{file}")
    return outcomes


def _declared(folder: Path) -> Mapping[str, Path]:
    """Application id → file of the documents below the folder; raises `ProblemsError` if one is not sound."""
    if not folder.is_dir() or not find([folder])[0]:
        return {}
    loaded = load_documents([folder])
    if errors(loaded.problems):
        raise ProblemsError(loaded.problems)
    return {document.application.id: Path(document.application.at.file) for document in loaded.documents}


def _told(found: Recognized, outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """What was found, for people."""
    topics = sum(len(application.topics) for application in found.applications)
    yield (
        f"Found {counted(len(found.applications), 'application')} with {counted(topics, 'internal topic')}."
    )
    width = max((len(application.id) for application in found.applications), default=0)
    for application in found.applications:
        outcome = outcomes.get(application.id)
        became = f"  → {outcome.text}" if outcome else ""
        yield f"  {application.id:{width}}  {_facts(application)}{became}"
    for id_ in found.stateless:
        yield f"  {id_} has no internal topics: it needs no document."
    by_reason = sorted(found.passed_over, key=lambda each: (each.reason, each.topic))
    for reason, group in groupby(by_reason, key=lambda each: each.reason):
        names = [each.topic for each in group]
        shown = ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW:,} more" if len(names) > _FEW else "")
        yield f"Passed over {shown}: {reason}."
    if any("no group has the id" in each.reason for each in found.passed_over):
        yield "To import an application whose group is gone, name it by --application-id."
    if any("lacks settings" in each.reason for each in found.passed_over):
        yield "To take a topic that Kafka Streams made before 2.5, name it by --topic."


def _unseen(seen: Survey) -> Iterator[str]:
    """What a user without rights sees is nothing, without an error."""
    for what, visible in (("topic", seen.topics), ("group", seen.groups)):
        if not visible:
            yield f"Not a single {what} can be seen: if there is one, this user may not Describe it."


def _facts(application: FoundApplication) -> str:
    partitions = sum(topic.partitions for topic in application.topics)
    sources = f"{counted(len(application.sources), 'source')}"
    return (
        f"{counted(len(application.topics), 'internal topic')}, {counted(partitions, 'partition')}, {sources}"
    )
