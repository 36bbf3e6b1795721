"""`headwater import --describe` updates an existing document instead of overwriting it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater.cli.console import ExitCode
from headwater.cli.imported_documents import DescribedApplication
from tests.cli.conftest import Headwater

_TEXT = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-AGGREGATE-0000000001
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [{store}])
      --> none
      <-- KSTREAM-SOURCE-0000000000
"""
_EXISTING = """\
# A comment.
version: 1
application:
  id: app
  kafkaStreams: "3.9"
  config: {topic.segment.ms: 0600000, consumer.max.poll.records: 10}
  setup: {adopt: true, adoptTopics: [app-x-changelog]}
describe:
  text: |
OLD
  stores:
    counts: {kind: window, retention: 1d, overrides: {min.insync.replicas: "2"}}
acls: {principals: ["User:app"]}
topics: {sink: {partitions: 4}}
"""


@pytest.fixture
def files(tmp_path: Path, headwater: Headwater) -> Path:
    """Return the folder of an imported document that its user has completed."""
    del headwater  # runs commands in this folder
    old = "".join(f"    {line}\n" for line in _TEXT.format(store="counts").splitlines())
    (tmp_path / "app.yaml").write_text(_EXISTING.replace("OLD\n", old))
    return tmp_path


def update(headwater: Headwater, files: Path, store: str, *more: str) -> tuple[int, str, dict[str, Any]]:
    (files / "new.txt").write_text(_TEXT.format(store=store))
    done = headwater("import", "--describe", "new.txt", "--application-id", "app", "-o", "app.yaml", *more)
    return done.returncode, done.stderr, yaml.safe_load((files / "app.yaml").read_text())


def test_what_the_user_has_declared_is_kept(headwater: Headwater, files: Path) -> None:
    before = yaml.safe_load((files / "app.yaml").read_text())
    code, _, after = update(headwater, files, "counts")
    assert code == ExitCode.DONE
    assert after["application"] == {
        **before["application"],
        "config": {"topic.segment.ms": "0600000", "consumer.max.poll.records": 10},
    }
    assert after["describe"]["stores"] == before["describe"]["stores"]
    assert {key: after[key] for key in ("acls", "topics")} == {key: before[key] for key in ("acls", "topics")}
    assert update(headwater, files, "counts")[2] == after, "a second update changes nothing"


def test_details_of_stores_that_the_new_text_does_not_have_are_removed(
    headwater: Headwater, files: Path
) -> None:
    _, stderr, after = update(headwater, files, "totals")
    assert "counts" not in after["describe"].get("stores", {})
    assert "totals" in after["describe"]["unknown"]["stores"]
    assert "counts" not in stderr


def test_details_of_topics_that_the_new_text_does_not_have_are_removed(
    headwater: Headwater, files: Path
) -> None:
    """Not even if their names are parts of the names of other topics."""
    written = yaml.safe_load((files / "app.yaml").read_text())
    topics = "[orders, by-customer-repartition]"
    text = _TEXT.replace("[orders]", topics)
    written["describe"] |= {
        "text": _TEXT.format(store="counts").replace("[orders]", "[orders, customer-repartition]"),
        "repartitions": {"customer": 4},
        "copartitioned": [["orders", "customer-repartition"]],
    }
    (files / "app.yaml").write_text(yaml.safe_dump(written))
    (files / "new.txt").write_text(text.format(store="counts"))
    done = headwater("import", "--describe", "new.txt", "--application-id", "app", "-o", "app.yaml")
    assert "customer, which is not in the description" not in done.stderr
    after = yaml.safe_load((files / "app.yaml").read_text())["describe"]
    assert not after.keys() & {"repartitions", "copartitioned"}


def test_the_command_line_has_priority(headwater: Headwater, files: Path) -> None:
    options = ("--config", "consumer.max.poll.records=20", "--kafka-streams", "4.1")
    _, _, after = update(headwater, files, "counts", *options, "--store", "counts=window,retention=2d")
    assert after["application"]["config"]["consumer.max.poll.records"] == "20"
    assert after["application"]["kafkaStreams"] == "4.1"
    assert after["describe"]["stores"]["counts"] == {"kind": "window", "retention": "2d"}


def test_an_assumed_version_stays_and_stays_unknown(headwater: Headwater, files: Path) -> None:
    text = (files / "app.yaml").read_text()
    (files / "app.yaml").write_text(text.replace("acls:", "  unknown: {application: [kafkaStreams]}\nacls:"))
    _, _, after = update(headwater, files, "counts")
    assert after["application"]["kafkaStreams"] == "3.9"
    assert "kafkaStreams" in after["describe"]["unknown"]["application"]


def test_an_observed_document_becomes_complete(headwater: Headwater, files: Path) -> None:
    (files / "app.yaml").write_text(
        "application: {id: app, setup: {adopt: true}}\n"
        "observed: {unknown: [subtopologies], topics: {counts-changelog: {kind: changelog, partitions: 4}}}\n"
    )
    _, stderr, after = update(headwater, files, "counts")
    assert "observed" not in after, stderr
    assert after["application"]["setup"] == {"adopt": True}


def test_sections_can_be_appended_to_an_imported_document(headwater: Headwater, files: Path) -> None:
    (files / "app.yaml").unlink()
    (files / "new.txt").write_text(_TEXT.format(store="counts") + "\n")  # as Topology#describe() ends
    arguments = ("import", "--describe", "new.txt", "--application-id", "app", "--store", "counts=keyValue")
    assert headwater(*arguments, "-o", "app.yaml").returncode == ExitCode.DONE
    with (files / "app.yaml").open("a") as file:
        file.write("acls: {principals: ['User:app']}\n")
    assert headwater(*arguments, "-o", "app.yaml").returncode == ExitCode.DONE
    assert yaml.safe_load((files / "app.yaml").read_text())["acls"] == {"principals": ["User:app"]}


def test_a_file_that_is_not_text_is_not_overwritten(headwater: Headwater, files: Path) -> None:
    (files / "app.yaml").write_bytes(b"\xff\xfe\x00")
    (files / "new.txt").write_text(_TEXT.format(store="counts"))
    done = headwater("import", "--describe", "new.txt", "--application-id", "app", "-o", "app.yaml")
    assert done.returncode == ExitCode.PROBLEMS
    assert "error[UnreadableDocument]" in done.stderr
    assert (files / "app.yaml").read_bytes() == b"\xff\xfe\x00"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("application: {id: other}\ndescribe: {text: x}\n", ""),
        ("application: {id: other}\ntopology: [stream: {topic: a}]\n", "declares other, not only app"),
        ("application: {id: app}\ntopology: [stream: {topic: a}]\n", "was not imported from a text"),
        ("application: {id: app}\nobserved: {}\n---\napplication: {id: b}\nobserved: {}\n", ""),
        ("application: {id: app\n", "error[YamlSyntax]"),
    ],
)
def test_another_document_is_not_overwritten(
    headwater: Headwater, files: Path, text: str, reason: str
) -> None:
    (files / "app.yaml").write_text(text)
    (files / "new.txt").write_text(_TEXT.format(store="counts"))
    done = headwater("import", "--describe", "new.txt", "--application-id", "app", "-o", "app.yaml")
    assert done.returncode == ExitCode.PROBLEMS
    assert reason in done.stderr
    assert (files / "app.yaml").read_text() == text


def test_the_protocol_of_the_group_replaces_the_declared_one() -> None:
    imported = DescribedApplication(
        application_id="app",
        text="x",
        uses_streams_protocol=True,
        kept_application={"protocol": "classic", "setup": {"adopt": True}},
    )
    application = yaml.safe_load(imported.document())["application"]
    assert application["protocol"] == "streams"
    assert application["setup"] == {"adopt": True}
