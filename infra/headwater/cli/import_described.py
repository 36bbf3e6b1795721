"""`headwater import --describe` and `--group`: create or update the document of one application."""

import codecs
import errno
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from headwater.cli.console import print_line, write_text
from headwater.cli.import_details import complete_description, missing_details
from headwater.cli.imported_documents import DescribedApplication
from headwater.describe import (
    UnusableTopologyError,
    pushed_topology,
    read_description,
    without_prefix,
    write_description,
)
from headwater.describe.problems import TextProblems
from headwater.kafka.command_line import NamedCluster
from headwater.kafka.input_files import LARGEST_TEXT, STANDARD_INPUT, read_input
from headwater.model.nodes import NodeTopology
from headwater.model.problems import Problem, ProblemCode, ProblemsError, errors
from headwater.model.versions import DEFAULT_VERSION, KafkaStreamsVersion, logged_version, read_any_version
from headwater.spec import load_text
from headwater.spec.files import read_regular_file
from headwater.spec.scalars import WrittenFloat, WrittenInt
from headwater.spec.yaml_text import read_yaml

_OF_TEXT = ("version", "application", "describe")
_IMPORTED = frozenset({"describe", "observed"})


@attrs.frozen(kw_only=True)
class ImportOptions:
    """The options of an import of one application: what it declares, and where its document is written."""

    config: Mapping[str, str]
    kafka_streams: KafkaStreamsVersion | None
    cluster: NamedCluster
    output: Path | None
    assume_defaults: bool

    def check_output(self) -> None:
        if self.output is not None and self.output.is_dir():
            raise click.BadParameter(f"File '{self.output}' is a directory.", param_hint="--output")


def import_group(group: str, options: ImportOptions) -> tuple[Problem, ...]:
    """Write the document of a streams group whose topology the brokers have; return all problems."""
    options.check_output()
    imported, nodes = _read_pushed_topology(group, options)
    imported = attrs.evolve(
        imported,
        config=options.config,
        kafka_streams=_choose_version(options.kafka_streams, None),
        names_version=options.kafka_streams is not None,
    )
    return _write_document(_add_existing(imported, nodes, options.output), options)


def import_described(
    imported: DescribedApplication, description: Path, topology: str | None, options: ImportOptions
) -> tuple[Problem, ...]:
    """Write the document of a description; `imported` has the details of the command line."""
    options.check_output()
    text = _read_description_text(description)
    file = "standard input" if str(description) == STANDARD_INPUT else str(description)
    nodes, problems = read_description(text, file, topology)
    if errors(problems):
        return tuple(problems)
    if not nodes.nodes:
        empty = TextProblems(file)
        empty.add_missing_nodes()
        return (*problems, *empty.found)
    logged = logged_version(text)
    imported = attrs.evolve(
        imported,
        text=write_description(without_prefix(nodes, imported.application_id)),
        kafka_streams=_choose_version(options.kafka_streams, logged),
        names_version=options.kafka_streams is not None or logged is not None,
        config=options.config,
    )
    return (*problems, *_write_document(_add_existing(imported, nodes, options.output), options))


def _add_existing(
    imported: DescribedApplication, nodes: NodeTopology, output: Path | None
) -> DescribedApplication:
    """Return the import with what the document at `output` says in addition, if there is one."""
    existing = _read_existing(output, imported.application_id)
    return imported if existing is None else _with_existing(imported, existing, nodes)


def _read_pushed_topology(id_: str, options: ImportOptions) -> tuple[DescribedApplication, NodeTopology]:
    """Return the application whose clients have sent their topology to the brokers, and this topology."""
    from headwater.cli.streams_group import read_streams_group, unusable_topology  # noqa: PLC0415 - imports the client

    found = read_streams_group(id_, options.cluster.connection())
    try:
        nodes = pushed_topology(found)
    except UnusableTopologyError as error:
        raise ProblemsError([unusable_topology(id_, error.reason)]) from None
    described = DescribedApplication(
        application_id=id_, text=write_description(nodes), uses_streams_protocol=True
    )
    return described, nodes


def _choose_version(given: KafkaStreamsVersion | None, logged: str | None) -> str:
    """Return the version for the document, and print a warning if the log names another one."""
    if given is not None:
        named = None if logged is None else read_any_version(logged)
        if logged is not None and (named is None or named.release != given.release):
            print_line(
                f"Warning: the log is of Kafka Streams {logged}, but --kafka-streams is {given}.", err=True
            )
        return given.written
    if logged is None:
        return DEFAULT_VERSION.written
    known = read_any_version(logged)
    return logged if known is None else known.written


def _write_document(imported: DescribedApplication, options: ImportOptions) -> tuple[Problem, ...]:
    """Write the document with its open questions, unless there are other errors; return all problems."""
    connection = options.cluster.named_connection()
    file = str(options.output or "document")
    imported, found = complete_description(
        imported, connection, file, assume_defaults=options.assume_defaults
    )
    if all(problem.code is ProblemCode.MISSING_DETAIL for problem in errors(found)):
        write_text(imported.document(missing_details(found)), options.output)
    return found


def _read_description_text(description: Path) -> str:
    """Return the text; bytes that are not UTF-8 are in log lines, not in the description.

    PowerShell writes UTF-16.
    """
    try:
        content = read_input(description, LARGEST_TEXT)
    except OSError as error:
        advice = "\n  Remove the text around the description." if error.errno == errno.EFBIG else ""
        raise click.ClickException(f"{description} cannot be read: {error.strerror}.{advice}") from None
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if is_utf16 else "utf-8", errors="replace")


def _read_existing(output: Path | None, application_id: str) -> Mapping[str, Any] | None:
    """Return the content of the document at `output`; None if there is no file.

    Raises:
        ProblemsError: The file cannot be read, or the document has errors.
        click.ClickException: The file has other documents, or a topology that was not imported.
    """
    if output is None or str(output) == "-" or not output.exists():
        return None
    text = read_regular_file(output)
    if isinstance(text, Problem):
        raise ProblemsError([text])
    loaded = load_text(text, str(output))
    raws, _ = read_yaml(text, str(output))
    if wrong := errors(loaded.problems):
        raise ProblemsError(wrong)
    ids = [document.application.id for document in loaded.documents]
    if ids != [application_id]:
        raise click.ClickException(
            f"{output} declares {', '.join(ids)}, not only {application_id}: nothing was written.\n"
            "  Choose another file by --output."
        )
    content: Mapping[str, Any] = _with_numbers_as_text(raws[0].data)
    if not content.keys() & _IMPORTED:
        raise click.ClickException(
            f"{output} has a topology that was not imported from a text: nothing was written.\n"
            "  Choose another file by --output, or remove this one."
        )
    return content


def _with_existing(
    imported: DescribedApplication, existing: Mapping[str, Any], nodes: NodeTopology
) -> DescribedApplication:
    """Return the import with what the existing document says in addition.

    Details of stores and topics are kept as long as the new text has them. What the command line or the log
    says has priority.
    """
    application, described = existing["application"], existing.get("describe") or {}
    stores = {store.name for store in nodes.stores} | {
        store for node in nodes.nodes for store in getattr(node, "stores", ())
    }
    text = imported.text
    known = imported
    if not imported.names_version and (version := application.get("kafkaStreams")) is not None:
        unknown = (described.get("unknown") or {}).get("application") or ()
        # An earlier import may have assumed it.
        known = attrs.evolve(
            imported, kafka_streams=str(version), names_version="kafkaStreams" not in unknown
        )
    return attrs.evolve(
        known,
        config={**(application.get("config") or {}), **imported.config},
        stores={
            **{name: each for name, each in (described.get("stores") or {}).items() if name in stores},
            **imported.stores,
        },
        repartitions={
            **{
                name: count
                for name, count in (described.get("repartitions") or {}).items()
                if _has_name(text, f"{name}-repartition")
            },
            **imported.repartitions,
        },
        created_by={
            name: by for name, by in (described.get("createdBy") or {}).items() if _has_name(text, name)
        },
        copartitioned=[
            group
            for group in described.get("copartitioned") or ()
            if all(_has_name(text, name) for name in group)
        ],
        kept_application={
            key: value for key, value in application.items() if key not in ("id", "kafkaStreams", "config")
        },
        kept_sections={key: value for key, value in existing.items() if key not in {*_OF_TEXT, "observed"}},
    )


def _with_numbers_as_text(value: Any) -> Any:  # noqa: ANN401 - any part of a document
    """Return numbers that are written in another form, such as 0.10, as text: it means the same."""
    if isinstance(value, dict):
        return {key: _with_numbers_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_numbers_as_text(item) for item in value]
    return value.written if isinstance(value, WrittenInt | WrittenFloat) else value


def _has_name(text: str, name: str) -> bool:
    """Return whether the text has the name of a topic, with or without its suffix, and not only as a part."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(-repartition)?(?![\w.-])", text) is not None
