"""Many applications with a given number of internal topics, as documents."""

import json
from collections.abc import Mapping
from pathlib import Path

from infra.compiler import compile_documents
from infra.model.compiled import InternalTopic
from infra.spec import load_documents

SOURCE = "bench-source"
_PER_APPLICATION = 100


def write_documents(folder: Path, topics: int) -> None:
    """Write documents of `topics` internal topics, half of them repartition topics and half changelogs."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(topics // _PER_APPLICATION):
        (folder / f"bench-{number}.json").write_text(
            json.dumps(document(f"bench-{number}", _PER_APPLICATION))
        )


def document(application: str, topics: int) -> Mapping[str, object]:
    """Return one application's document."""
    topology: list[Mapping[str, object]] = [{"stream": {"topic": SOURCE, "as": "source"}}]
    for number in range(topics // 2):
        topology.append({"groupBy": {"from": "source", "key": "value.key", "name": f"by-{number}"}})
        topology.append({"count": {"materialized": f"counts-{number}"}})
    return {"application": {"id": application}, "topology": topology}


def internal_topics(folder: Path) -> list[InternalTopic]:
    """Return the topics that the documents compile to."""
    documents = load_documents([folder])
    if documents.problems:
        raise ValueError(documents.problems)
    compiled = compile_documents(documents.documents, {SOURCE: 1})
    return [topic for application in compiled for topic in application.internal_topics]
