"""`TopologyDocument.write` and `verify` of the library, as a test of an application calls them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headwater.spec import load_text
from tests.oracle.kafka_streams import KafkaStreams

pytestmark = pytest.mark.oracle


def _application(retention: str = "1h", **config: str) -> Mapping[str, Any]:
    window = {"tumbling": {"size": retention}}
    return {
        "application": {"id": "orders", "config": config},
        "topology": [
            {"stream": {"topic": "orders"}},
            {"groupBy": {"key": "value.customer", "name": "by-customer"}},
            {"windowedBy": window},
            {"count": {"materialized": "counts"}},
        ],
    }


def test_a_written_document_is_verified(kafka_streams: KafkaStreams, tmp_path: Path) -> None:
    file = tmp_path / "topologies" / "orders.yaml"
    assert kafka_streams.call_library("write", _application(), file) is None
    assert load_text(file.read_text(encoding="utf-8"), str(file)).problems == ()
    assert kafka_streams.call_library("verify", _application(), file) is None
    with_spaces = file.read_text(encoding="utf-8").replace("\n", "  \r\n")
    file.write_text(with_spaces, encoding="utf-8", newline="")
    assert kafka_streams.call_library("verify", _application(), file) is None


def test_each_difference_is_named(kafka_streams: KafkaStreams, tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    assert kafka_streams.call_library("write", _application(), file) is None
    changed = _application("2h", **{"replication.factor": "3"})
    thrown = kafka_streams.call_library("verify", changed, file)
    assert thrown is not None
    lines = thrown.splitlines()
    assert lines[0] == f"The topology document {file} is not what the code needs:"
    assert lines[1:3] == [
        (
            "  stores: counts: {kind: windowed, retention: 1h} in the document, "
            "{kind: windowed, retention: 2h} in the code"
        ),
        '  application: config: replication.factor: missing in the document, the code has "3"',
    ]
    assert "HEADWATER_WRITE=true" in thrown


def test_other_sections_are_kept(kafka_streams: KafkaStreams, tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    assert kafka_streams.call_library("write", _application(), file) is None
    text = file.read_text(encoding="utf-8")
    file.write_text(f"{text}\n# Ours.\nacls:\n  principals: [User:orders]\n", encoding="utf-8")
    assert kafka_streams.call_library("write", _application("2h"), file) is None
    again = file.read_text(encoding="utf-8")
    assert again == text.replace("retention: 1h", "retention: 2h") + (
        "\n# Ours.\nacls:\n  principals: [User:orders]\n"
    )
    assert kafka_streams.call_library("verify", _application("2h"), file) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "There is no topology document "),
        ("application: {id: orders}\n", "has no section `exported`."),
        ("application: {id: orders}\ntopology:\n  - stream: {topic: a}\n", "has the topology as calls"),
        ("application: {id: orders}\n---\napplication: {id: other}\n", "has several documents."),
        ("exported:\n  application:\n    id: billing\n", "is the document of billing"),
    ],
)
def test_files_that_are_not_the_document(
    kafka_streams: KafkaStreams, tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "orders.yaml"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    thrown = kafka_streams.call_library("verify", _application(), file)
    assert thrown is not None
    assert message in thrown
