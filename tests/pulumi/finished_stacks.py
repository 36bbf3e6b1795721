"""Stacks on which the first `up` has run, for tests of what later runs do.

`pulumi up` runs once for each document in a test run. A copy gets what it has left on the cluster and in the
state, with its own names and ids. `test_finished_stacks` compares a copy with a stack on which `up` has run.
"""

import fcntl
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import attrs

from headwater.change.ownership import write_ownership
from headwater.compiler import compile_documents
from headwater.kafka import Connection, KafkaClusterReader
from headwater.kafka.ownership import decode_record, encode_record
from headwater.model.records import OwnershipChange, OwnershipRecord
from headwater.planner.document_settings import document_settings
from headwater.pulumi.stack_state import COMPONENT_TYPE, TOPIC_TYPE
from headwater.spec import load_text

if TYPE_CHECKING:
    from tests.pulumi.conftest import Deployment

_SETTINGS = {"headwater:documents", "headwater:bootstrapServers"}


@attrs.frozen
class FinishedStacks:
    """The workers of a test run keep in `folder` what `up` has left."""

    folder: Path

    def set_up(self, deployment: "Deployment") -> None:
        """Give a new stack, with the usual settings and one document, what the first `up` leaves."""
        stack = deployment.stack
        assert not stack.state(), "only the first `up` is copied"
        assert stack.settings().keys() <= _SETTINGS, "the stack has other settings"
        [document] = (stack.folder / "documents").iterdir()
        partitions = deployment.cluster.partitions(deployment.source)
        text = _replaced(document.read_text(encoding="utf-8"), _names(deployment))
        digest = hashlib.sha256(f"{partitions} {text}".encode()).hexdigest()
        kept = self.folder / f"{digest}.json"
        with kept.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                deployment.up()
                written = kept.with_suffix(".new")  # a worker may be killed while it writes
                written.write_text(left_by_up(deployment), encoding="utf-8")
                written.replace(kept)
                return
        _copy(kept.read_text(encoding="utf-8"), deployment)


def left_by_up(deployment: "Deployment") -> str:
    """Return the state and the ownership record as JSON, with marks instead of the names and ids."""
    [record] = ownership_records(deployment)
    content = {
        "state": json.loads(deployment.stack.state_file.read_text(encoding="utf-8")),
        "record": json.loads(encode_record(record)),
    }
    ids = [(record.stack.id, "<stack>"), *((id_, _id_mark(name)) for name, id_ in record.topics.items())]
    return _replaced(json.dumps(content), [*ids, *_names(deployment)])


def ownership_records(deployment: "Deployment") -> list[OwnershipRecord]:
    """Return the ownership records of the application."""
    reader = KafkaClusterReader(Connection(bootstrap_servers=(deployment.cluster.bootstrap_servers,)))
    return [record for record in reader.read_ownership().records if record.application_id == deployment.id]


def _copy(left: str, deployment: "Deployment") -> None:
    """Create the topics, and write the state and the ownership record."""
    cluster = deployment.cluster
    text = _replaced(left, [("<stack>", uuid4().hex), *((mark, name) for name, mark in _names(deployment))])
    for resource in _resources(json.loads(text)):
        if resource["type"] == TOPIC_TYPE:
            inputs = resource["inputs"]
            cluster.create(inputs["name"], int(inputs["partitions"]), inputs["config"])
            text = text.replace(_id_mark(inputs["name"]), cluster.topic_id(inputs["name"]))
    content = json.loads(text)
    for resource in _resources(content):
        if resource["type"] == COMPONENT_TYPE:
            resource["outputs"]["settings"] = _settings(deployment)
    deployment.stack.state_file.write_text(json.dumps(content["state"]), encoding="utf-8")
    record = decode_record(json.dumps(content["record"]).encode())
    write_ownership(Connection(bootstrap_servers=(cluster.bootstrap_servers,)), OwnershipChange((record,)))


def _resources(content: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - parsed JSON
    return list(content["state"]["checkpoint"]["latest"]["resources"])


def _settings(deployment: "Deployment") -> dict[str, str]:
    """Return the settings in the setup record: the digest of the topology depends on its names."""
    text = (deployment.stack.folder / "documents" / f"{deployment.id}.yaml").read_text(encoding="utf-8")
    [compiled] = compile_documents(load_text(text, "copy.yaml").documents, {})
    return dict(sorted(document_settings(compiled).items()))


def _names(deployment: "Deployment") -> list[tuple[str, str]]:
    """Return what is different in each copy, with its mark."""
    return [
        (deployment.cluster.id(), "<cluster>"),
        (deployment.cluster.bootstrap_servers, "<broker>"),
        (deployment.stack.encrypted_key, "<key>"),
        (deployment.id, "<application>"),
        (deployment.source, "<source>"),
    ]


def _id_mark(topic: str) -> str:
    return f"<id of {topic}>"


def _replaced(text: str, replacements: Iterable[tuple[str, str]]) -> str:
    for old, new in replacements:
        text = text.replace(old, new)
    return text
