"""The document that an import updates: what it says and the imported text does not, is kept."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from headwater.cli.imported_documents import DescribedApplication
from headwater.model.nodes import NodeTopology
from headwater.model.problems import Problem, ProblemsError, errors
from headwater.spec import load_text
from headwater.spec.files import read
from headwater.spec.scalars import WrittenFloat, WrittenInt
from headwater.spec.yaml_text import read_yaml

_OF_TEXT = ("version", "application", "describe")
_IMPORTED = frozenset({"describe", "observed"})


def read_existing(output: Path | None, application_id: str) -> Mapping[str, Any] | None:
    """Return the content of the document at `output`; None if there is no file.

    Raises:
        ProblemsError: The file cannot be read, or the document has errors.
        click.ClickException: The file has other documents, or a topology that was not imported.
    """
    if output is None or str(output) == "-" or not output.exists():
        return None
    text = read(output)
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
    content: Mapping[str, Any] = _plain(raws[0].data)
    if not content.keys() & _IMPORTED:
        raise click.ClickException(
            f"{output} has a topology that was not imported from a text: nothing was written.\n"
            "  Choose another file by --output, or remove this one."
        )
    return content


def with_existing(
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


def _plain(value: Any) -> Any:  # noqa: ANN401 - any part of a document
    """Return numbers that are written in another form, such as 0.10, as text: it means the same."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.written if isinstance(value, WrittenInt | WrittenFloat) else value


def _has_name(text: str, name: str) -> bool:
    """Return whether the text has the name of a topic, with or without its suffix, and not only as a part."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(-repartition)?(?![\w.-])", text) is not None
