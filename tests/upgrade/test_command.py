"""`headwater upgrade`: offline and on a real cluster, formats, exit codes and bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.toolchain.broker.local import LocalBroker
from tests.pulumi.cluster import Cluster
from tests.upgrade.test_formats import SCHEMA
from tests.upgrade.upgrade_cases import JOINS, MERGED, PLAIN


def headwater(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("upgrade", *arguments), prog_name="headwater")


def document(folder: Path, text: str) -> str:
    (folder / "app.yaml").write_text(text)
    return str(folder / "app.yaml")


def read(done: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def test_nothing_changes_for_most_applications(tmp_path: Path) -> None:
    done = headwater(document(tmp_path, PLAIN), "--to", "4.2", "--partitions", "orders=4")

    assert done.exit_code == ExitCode.DONE
    assert done.stdout == (
        "Upgrade to Kafka Streams 4.2.2: nothing changes in 1 application.\n\n"
        "plain  4.1.2 to 4.2.2, nothing changes, state kept\n"
        "  Rolling restart: safe.\n"
    )


def test_changes_without_known_counts_are_found_and_the_counts_named(tmp_path: Path) -> None:
    done = headwater(document(tmp_path, MERGED), "--to", "4.3", "--format", "json")

    found = read(done)
    assert done.exit_code == ExitCode.DRIFT
    assert found["assumedTopics"] == ["keyed", "plain"]
    assert found["applications"][0]["rollingRestart"] is False
    assert [change["kind"] for change in found["applications"][0]["changes"]] == [
        "dropped-topic",
        "sub-topologies",
        "nodes",
    ]


def test_markdown_is_written_to_a_file(tmp_path: Path) -> None:
    report = tmp_path / "upgrade.md"

    done = headwater(
        document(tmp_path, JOINS), "--to", "4.3", "--format", "markdown", "--output", str(report)
    )

    assert done.exit_code == ExitCode.DRIFT
    assert report.read_text().startswith("**Upgrade to Kafka Streams 4.3.1: 2 changes")


@pytest.mark.parametrize("version", ["4.9", "3.6", "latest", "4.1.9"])
def test_an_unknown_version_is_a_usage_error_that_names_the_supported_ones(
    version: str, tmp_path: Path
) -> None:
    done = headwater(document(tmp_path, PLAIN), "--to", version)

    assert done.exit_code == ExitCode.USAGE
    assert f"Kafka Streams {version} is not supported." in " ".join(done.stderr.split())
    assert "3.7, 3.8, 3.9, 4.0, 4.1, 4.2, 4.3" in " ".join(done.stderr.split())


def test_a_downgrade_is_an_incomplete_comparison(tmp_path: Path) -> None:
    done = headwater(document(tmp_path, PLAIN), "--to", "3.9", "--partitions", "orders=4")

    assert done.exit_code == ExitCode.REFUSED
    assert "error[UnsupportedVersion] plain runs a later version than Kafka Streams 3.9.2." in done.stdout


def test_an_earlier_patch_is_compared(tmp_path: Path) -> None:
    done = headwater(document(tmp_path, PLAIN), "--to", "4.1.1", "--partitions", "orders=4")

    assert done.exit_code == ExitCode.DONE
    assert "plain  4.1.2 to 4.1.1, nothing changes, state kept" in done.stdout
    assert "Rolling restart: safe." in done.stdout


def test_documents_with_errors_are_not_compared(tmp_path: Path) -> None:
    done = headwater(document(tmp_path, PLAIN.replace("4.1", "2.8")), "--to", "4.3")

    assert done.exit_code == ExitCode.PROBLEMS
    assert "error[UnsupportedVersion] Kafka Streams 2.8 is not supported." in done.stderr


_DESCRIBED = """
application: {id: described, kafkaStreams: "3.9"}
describe:
  text: |
    Topologies:
       Sub-topology: 0
        Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
          --> KSTREAM-PROCESSOR-0000000001
        Processor: KSTREAM-PROCESSOR-0000000001 (stores: [STORES])
          --> none
          <-- KSTREAM-SOURCE-0000000000
"""


def test_an_application_with_a_described_text_may_not_be_complete(tmp_path: Path) -> None:
    stores = "  stores: {first: {kind: keyValue}, second: {kind: keyValue}}\n"
    text = _DESCRIBED.replace("STORES", "first, second") + stores
    done = headwater(document(tmp_path, text), "--to", "4.3", "--partitions", "orders=2")

    assert done.exit_code == ExitCode.REFUSED
    assert done.stdout.startswith(
        "Upgrade to Kafka Streams 4.3.1: no change found in 1 application. The comparison is not complete"
    )
    assert "described  3.9.2 to 4.3.1, changes not known" in done.stdout
    assert "warning[MissingDetail] What Kafka Streams 4.3.1 builds for described is not known." in done.stdout
    assert "Rolling restart: not known to be safe" in done.stdout


def test_a_described_text_without_state_is_complete(tmp_path: Path) -> None:
    text = _DESCRIBED.replace("STORES", "")
    done = headwater(document(tmp_path, text), "--to", "4.3", "--partitions", "orders=2")

    assert done.exit_code == ExitCode.DONE, done.stdout
    assert "nothing changes, no state" in done.stdout
    assert "Rolling restart: safe." in done.stdout


@pytest.mark.broker
def test_a_cluster_shows_counts_and_topics_with_data(
    kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    cluster = Cluster(kafka.bootstrap_servers)
    id_, plain, keyed = unique("merged"), unique("plain"), unique("keyed")
    text = MERGED.replace("id: merged", f"id: {id_}").replace("topic: plain", f"topic: {plain}")
    file = document(tmp_path, text.replace("stream: keyed", f"stream: {keyed}"))
    cluster.create(plain, 3)
    cluster.create(keyed, 3)
    server = ("--bootstrap-server", kafka.bootstrap_servers, "--format", "json")

    before = read(headwater(file, "--to", "4.3", *server))
    cluster.create(f"{id_}-latest-repartition", 3)
    done = headwater(file, "--to", "4.3", *server)

    after = read(done)
    assert done.exit_code == ExitCode.DRIFT
    assert after["assumedTopics"] == []
    assert after["clusterId"] == before["clusterId"]
    severities = [found["applications"][0]["changes"][0]["severity"] for found in (before, after)]
    assert severities == ["info", "error"]
    assert after["applications"][0]["changes"][0]["topic"] == f"{id_}-latest-repartition"


@pytest.mark.broker
def test_an_unreachable_cluster_is_a_problem(tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("bootstrap.servers=127.0.0.1:1\nrequest.timeout.ms=2000\n")

    done = headwater(document(tmp_path, PLAIN), "--to", "4.3", "--command-config", str(settings))

    assert done.exit_code == ExitCode.PROBLEMS
    assert "ClusterUnreachable" in done.stderr
