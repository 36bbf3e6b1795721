"""Fixes whose success a real broker decides: it refuses settings, has its own defaults, and has the state."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.compiler.streams_config import LIBRARY_SUPPLIER
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import launch
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.pulumi.cluster import Cluster
from tests.runtime.reshard.stopped_application import KEYS, StoppedApplication
from tests.runtime.spark.kafka_topics import Topics

pytestmark = pytest.mark.broker
_CREATED = {"message.timestamp.type": "CreateTime"}
"""What Kafka Streams sets on each topic that it creates: without it, nothing shows whose a topic is."""
_REPARTITION = {"cleanup.policy": "delete", "segment.bytes": "52428800", "retention.ms": "-1"} | _CREATED
_COMPACTED = {"cleanup.policy": "compact"} | _CREATED


@attrs.define
class Shop:
    """An application that counts by a new key, its document, and its cluster."""

    id: str
    source: str
    cluster: Cluster
    file: Path
    config: str = ""
    count: str = "counts"

    @property
    def repartition(self) -> str:
        return f"{self.id}-by-k-repartition"

    @property
    def changelog(self) -> str:
        return f"{self.id}-counts-changelog"

    def plan(self) -> tuple[int, str, str]:
        """Return the exit code of `headwater plan`, the plan, and its problems."""
        self.file.write_text(
            f'application: {{id: {self.id}, kafkaStreams: "4.3", config: {{{self.config}}}}}\n'
            f"topology: [{{stream: {self.source}}}, {{selectKey: }}, {{groupByKey: {{name: by-k}}}}, "
            f"{{count: {{materialized: {self.count}}}}}]\n"
        )
        server = ("--bootstrap-server", self.cluster.bootstrap_servers)
        done = CliRunner().invoke(main, ("plan", str(self.file), *server), prog_name="headwater")
        return done.exit_code, done.stdout, " ".join(done.stderr.split())


@pytest.fixture
def shop(kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path) -> Shop:
    made = Shop(unique("shop"), unique("source"), Cluster(kafka.bootstrap_servers), tmp_path / "app.yaml")
    made.cluster.create(made.source, 4)
    return made


def test_an_empty_topic_that_is_too_small_is_deleted(shop: Shop) -> None:
    shop.cluster.create(shop.repartition, 1, _REPARTITION)
    code, _, problems = shop.plan()
    assert (code, "error[UnderPartitionedInternalTopic]" in problems) == (ExitCode.REFUSED, True)
    assert f"4 partitions, as many as {shop.source}" in problems
    assert "The topic is empty: stop the application, delete the topic" in problems
    shop.cluster.delete(shop.repartition)
    assert shop.plan()[::2] == (ExitCode.DONE, "")


def test_a_topic_with_records_is_expanded_while_there_is_no_state(shop: Shop) -> None:
    shop.cluster.create(shop.repartition, 1, _REPARTITION)
    shop.cluster.produce(shop.repartition)
    _, _, problems = shop.plan()
    assert "To add the partitions, set `partition.autoscaling.enabled: true`" in problems
    shop.config = "partition.autoscaling.enabled: true"
    code, plan, problems = shop.plan()
    assert (code, problems) == (ExitCode.DONE, "")
    assert f"{shop.repartition}  1 → 4 partitions" in plan


def test_records_of_a_changelog_are_state(shop: Shop) -> None:
    shop.cluster.create(shop.repartition, 1, _REPARTITION)
    shop.cluster.create(shop.changelog, 1, _COMPACTED)
    shop.config = "partition.autoscaling.enabled: true"
    assert shop.plan()[0] == ExitCode.DONE
    shop.cluster.produce(shop.changelog, key=b"key")
    code, _, problems = shop.plan()
    assert (code, "error[UnsafeExpansion]" in problems) == (ExitCode.REFUSED, True)


def test_a_setting_on_purpose_is_declared_at_the_store(shop: Shop) -> None:
    shop.cluster.create(shop.repartition, 4, _REPARTITION)
    shop.cluster.create(shop.changelog, 4, {"cleanup.policy": "compact,delete"} | _CREATED)
    code, plan, problems = shop.plan()
    assert (code, "cleanup.policy: compact,delete → compact" in plan) == (ExitCode.DONE, True)
    assert 'declare it at store counts: `logging: {cleanup.policy: "compact,delete"}`' in problems
    shop.count = '{store: counts, logging: {cleanup.policy: "compact,delete"}}'
    code, plan, problems = shop.plan()
    assert (code, problems) == (ExitCode.DONE, "")
    assert "cleanup.policy" not in plan


def test_the_setting_of_a_topic_with_too_few_replicas_is_lowered(shop: Shop) -> None:
    shop.cluster.create(shop.repartition, 4, _REPARTITION)
    shop.cluster.create(shop.changelog, 4, _COMPACTED)
    shop.cluster.set_config(shop.changelog, min_insync_replicas="2")
    _, _, problems = shop.plan()
    assert f"--alter --topic {shop.changelog} --add-config min.insync.replicas=1" in problems
    assert "Reassign its partitions to 2 or more replicas" in problems
    shop.cluster.set_config(shop.changelog, min_insync_replicas="1")
    assert shop.plan()[::2] == (ExitCode.DONE, "")


@pytest.fixture
def stopped(kafka: LocalBroker, unique: Callable[[str], str]) -> StoppedApplication:
    made = StoppedApplication(kafka.bootstrap_servers, Topics(kafka.bootstrap_servers), unique("stopped"))
    made.create()
    return made


def _run(app: StoppedApplication, *words: str) -> tuple[int, str]:
    """Return the exit code of a command, and its output in one line."""
    done = CliRunner().invoke(main, [*words, "--bootstrap-server", app.servers], prog_name="headwater")
    return done.exit_code, " ".join(done.output.split())


def test_an_application_that_has_run_during_its_reshard_is_reset(
    stopped: StoppedApplication, tmp_path: Path, kafka_distribution: KafkaDistribution
) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(stopped.text())
    assert stopped.reshard_killed_after(3)
    staying = next(each for each in KEYS[1:] if default_partition(each, 2) == default_partition(each, 5))
    for store in ("kept", "totals"):
        topic = stopped.internal[f"{store}-changelog"]
        stopped.topics.send(
            [(topic, default_partition(staying, 2), staying, b"newer", 1_760_000_000_000, ())]
        )
    for _ in range(2):
        code, text = _run(stopped, "reshard", str(file))
        assert (code, "does not have the entries that were written to it" in text) == (1, True), text
        assert "If it finds the same, an instance has processed records" in text
    reset = ("--application-id", stopped.id, "--input-topics", stopped.source)
    line = launch.broker_tool_command(kafka_distribution, "streams-application-reset", stopped.servers, reset)
    subprocess.run(line, check=True, capture_output=True)
    assert until(lambda: not {*stopped.internal.values()} & {*stopped.topics.names()}, 90)
    code, text = _run(stopped, "plan", str(file))
    assert (code, "error" in text, "reshard" in text) == (ExitCode.DONE, False, False), text
    assert [each.offset for each in stopped.committed(stopped.source)] == [0] * 2


def test_autoscaling_is_switched_off_before_a_reshard(stopped: StoppedApplication, tmp_path: Path) -> None:
    file, document = tmp_path / "orders.json", json.loads(stopped.text())
    config = {"default.client.supplier": LIBRARY_SUPPLIER, "partition.autoscaling.enabled": True}
    document["application"]["config"] = config
    file.write_text(json.dumps(document))
    stopped.topics.expand(stopped.source, 5)
    code, text = _run(stopped, "reshard", str(file))
    assert (code, "Set `partition.autoscaling.enabled` to false in the document" in text) == (1, True), text
    config["partition.autoscaling.enabled"] = False
    file.write_text(json.dumps(document))
    code, text = _run(stopped, "reshard", str(file))
    assert code == 0, text
    assert {stopped.topics.partitions(each) for each in stopped.internal.values()} == {5}
