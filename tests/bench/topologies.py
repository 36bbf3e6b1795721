"""Many applications with a given number of internal topics, as documents."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public, but not exported explicitly

from headwater.compiler import compile_documents
from headwater.model.compiled import InternalTopic
from headwater.spec import load_documents

SOURCE = "bench-source"
_PER_APPLICATION = 100


def write_documents(folder: Path, topics: int, prefix: str = "bench") -> None:
    """Write documents of `topics` internal topics, half of them repartition topics and half changelogs."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(topics // _PER_APPLICATION):
        id_ = f"{prefix}-{number}"
        (folder / f"{id_}.json").write_text(json.dumps(document(id_, _PER_APPLICATION)))


def document(application: str, topics: int) -> Mapping[str, object]:
    """Return one application's document."""
    topology: list[Mapping[str, object]] = [{"stream": {"topic": SOURCE, "as": "source"}}]
    for number in range(topics // 2):
        topology.append({"groupBy": {"from": "source", "key": "value.key", "name": f"by-{number}"}})
        topology.append({"count": {"materialized": f"counts-{number}"}})
    return {"application": {"id": application}, "topology": topology}


def make_topics(bootstrap_servers: str, topics: Iterable[InternalTopic]) -> None:
    """Create the missing topics of `topics`."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    existing = admin.list_topics(timeout=30).topics
    new = [
        NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=1, config=dict(topic.config))
        for topic in topics
        if topic.name not in existing
    ]
    for future in admin.create_topics(new, operation_timeout=120, request_timeout=120).values():
        future.result()


def internal_topics(folder: Path) -> list[InternalTopic]:
    """Return the topics that the documents compile to."""
    documents = load_documents([folder])
    if documents.problems:
        raise ValueError(documents.problems)
    compiled = compile_documents(documents.documents, {SOURCE: 1})
    return [topic for application in compiled for topic in application.internal_topics]
