"""The recorded cases as typed values; `<app>` is the placeholder of the application id."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from headwater.model.topology import TopologyDocument
from headwater.model.versions import read_version
from headwater.spec import load_documents
from tests.oracle.case_documents import case_folders
from tests.oracle.kafka_streams import RECORDED

Json = dict[str, Any]


@attrs.frozen
class Case:
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def has(self, file: str) -> bool:
        return (self.folder / file).exists()

    def text(self, file: str) -> str:
        return (self.folder / file).read_bytes().decode()

    def json(self, file: str) -> Json:
        content: Json = json.loads(self.text(file))
        return content

    def document(self) -> TopologyDocument:
        """Return the document for the version of Kafka Streams that was recorded."""
        return _document(self.folder)


@cache
def _document(folder: Path) -> TopologyDocument:
    documents = load_documents([folder / "document.yaml"])
    assert not documents.problems
    return of_recorded_version(documents.documents[0])


def of_recorded_version(document: TopologyDocument) -> TopologyDocument:
    version = read_version(RECORDED)
    assert version is not None
    application = attrs.evolve(document.application, kafka_streams=version, names_version=True)
    return attrs.evolve(document, application=application)


CASES = tuple(Case(folder) for folder in case_folders())


def cases_with(*files: str) -> tuple[Case, ...]:
    return tuple(case for case in CASES if all(case.has(file) for file in files))


def recorded_counts(counts: Mapping[str, int], application_id: str) -> dict[str, int]:
    """Return `counts` with `<app>` instead of the application id."""
    return {topic.replace(f"{application_id}-", "<app>-", 1): count for topic, count in counts.items()}
