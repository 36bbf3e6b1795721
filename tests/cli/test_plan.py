"""plan, compile and import with a real cluster."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headwater.cli.console import ExitCode
from headwater.spec import load_text
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.cli.conftest import Headwater

pytestmark = pytest.mark.broker
_CREATED = {"cleanup_policy": "delete", "message_timestamp_type": "CreateTime"}
"""What Kafka Streams sets on each topic that it creates."""
_DOCUMENT = """\
application: {{id: {id}, config: {{internal.topics.setup: manual}}}}
topology:
  - stream: {{topic: {source}}}
  - groupBy: {{key: value.k, name: by-k}}
  - windowedBy: {{tumbling: {{size: 1h}}}}
  - count: {{materialized: counts}}
"""


@pytest.fixture
def topics(kafka: LocalBroker) -> Callable[..., None]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})

    def create(name: str, partitions: int, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result()
        # The controller answers before all brokers have the topic.
        assert until(lambda: name in admin.list_topics(timeout=60).topics, 60)

    return create


def kafka_topics(kafka: LocalBroker) -> set[str]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    return set(admin.list_topics(timeout=60).topics)


@pytest.fixture
def names(unique: Callable[[str], str], tmp_path: Path) -> tuple[str, str]:
    id_, source = unique("app"), unique("source")
    (tmp_path / "app.yaml").write_text(_DOCUMENT.format(id=id_, source=source), encoding="utf-8")
    return id_, source


def test_plan_and_its_refusals(
    headwater: Headwater, kafka: LocalBroker, names: tuple[str, str], topics: Callable[..., None]
) -> None:
    id_, source = names
    arguments = ("plan", "app.yaml", "--bootstrap-server", kafka.bootstrap_servers)
    missing = headwater(*arguments)
    assert missing.returncode == ExitCode.REFUSED
    assert "error[MissingSourceTopic]" in missing.stderr
    topics(source, 5)
    planned = headwater(*arguments)
    assert (planned.returncode, planned.stderr) == (ExitCode.DONE, "")
    assert planned.stdout.startswith("Plan for 1 application: 2 to create, 0 unchanged.\n")
    topics(f"{id_}-by-k-repartition", 5, retention_ms="-1", **_CREATED)
    incomplete = headwater(*arguments)
    assert incomplete.returncode == ExitCode.REFUSED
    assert "Refused: 1 error, nothing is changed." in incomplete.stdout
    assert "error[MissingInternalTopics]" in incomplete.stderr


def test_the_brokers_validate_a_plan_without_executing_it(
    headwater: Headwater,
    kafka: LocalBroker,
    names: tuple[str, str],
    topics: Callable[..., None],
    tmp_path: Path,
) -> None:
    id_, source = names
    topics(source, 5)
    document = tmp_path / "app.yaml"
    document.write_text(
        document.read_text(encoding="utf-8").replace(
            "internal.topics.setup: manual}",
            "topic.vendor.tier: cold}, setup: {allowTopicConfigs: [vendor.*]}",
        ),
        encoding="utf-8",
    )
    refused = headwater("plan", "app.yaml", "--bootstrap-server", kafka.bootstrap_servers)
    assert refused.returncode == ExitCode.REFUSED
    assert "Refused: 2 errors, nothing is changed." in refused.stdout
    assert "error[RefusedByBrokers] The brokers refuse to create topic" in refused.stderr
    assert "Unknown topic config name: vendor.tier" in " ".join(refused.stderr.split())
    assert not [name for name in kafka_topics(kafka) if name.startswith(id_)]


def test_counts_are_read_from_the_cluster_unless_given(
    headwater: Headwater,
    kafka: LocalBroker,
    names: tuple[str, str],
    topics: Callable[..., None],
    tmp_path: Path,
) -> None:
    _, source = names
    topics(source, 5)
    config = tmp_path / "client.properties"
    config.write_text(f"bootstrap.servers={kafka.bootstrap_servers}\n", encoding="utf-8")
    assert "5 tasks" in headwater("compile", "app.yaml", "--command-config", config).stdout
    given = headwater("compile", "app.yaml", "--command-config", config, "--partitions", f"{source}=7")
    assert "7 tasks" in given.stdout


def test_import_reads_missing_details_from_the_cluster(
    headwater: Headwater,
    kafka: LocalBroker,
    names: tuple[str, str],
    topics: Callable[..., None],
    tmp_path: Path,
) -> None:
    id_, source = names
    topics(source, 5)
    topics(f"{id_}-by-k-repartition", 5, cleanup_policy="delete", segment_bytes="52428800", retention_ms="-1")
    topics(
        f"{id_}-counts-changelog",
        5,
        cleanup_policy="compact,delete",
        retention_ms=str(3_600_000 + 86_400_000),
    )
    (tmp_path / "text").write_text(headwater("describe", "app.yaml").stdout, encoding="utf-8")
    arguments = ("import", "--describe", "text", "--application-id", id_, "--kafka-streams", "4.3")
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    done = headwater(*arguments, *server, "-o", "imported.yaml")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "Not known of the application: its group protocol." in done.stderr
    assert done.stderr.count("warning[") == 1
    (document,) = load_text(
        (tmp_path / "imported.yaml").read_text(encoding="utf-8"), "imported.yaml"
    ).documents
    assert document.described is not None
    assert document.described.stores["counts"].retention_ms == 3_600_000
    assert f"has no group {id_}: " in (tmp_path / "imported.yaml").read_text(encoding="utf-8")
    adopted = headwater("plan", "imported.yaml", "--bootstrap-server", kafka.bootstrap_servers)
    assert "2 to adopt" in adopted.stdout
    topics(f"{id_}-cdc-changelog", 3)  # a name alone does not show that it belongs to the application
    assert headwater(*arguments, *server, "-o", "imported.yaml").returncode == ExitCode.DONE
    topics(f"{id_}-old-changelog", 3, **_CREATED)
    done = headwater(*arguments, *server, "-o", "imported.yaml")
    assert done.returncode == ExitCode.DRIFT
    assert f"warning[DiffersFromCluster] {id_}-old-changelog is an internal topic of {id_}" in done.stderr
    assert f"{id_}-cdc-changelog" not in done.stderr


def test_plan_and_drift_estimate_what_an_expansion_of_processors_takes(
    headwater: Headwater,
    kafka: LocalBroker,
    unique: Callable[[str], str],
    topics: Callable[..., None],
    tmp_path: Path,
) -> None:
    id_, source = unique("app"), unique("source")
    (tmp_path / "app.yaml").write_text(
        f"application: {{id: {id_}, processors: 4, config: {{processing.guarantee: exactly_once_v2}}}}\n"
        f"topology: [{{stream: {source}}}, {{groupByKey: }}, {{count: {{materialized: counts}}}}]\n"
    )
    changelog = f"{id_}-counts-changelog"
    topics(source, 4)
    topics(changelog, 2, **{**_CREATED, "cleanup_policy": "compact"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(340):
        producer.produce(changelog, b"value", b"%d" % number)
    assert producer.flush(90) == 0
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    planned, found = (headwater(command, "app.yaml", *server) for command in ("plan", "drift"))
    assert (planned.returncode, found.returncode) == (ExitCode.DONE, ExitCode.DRIFT), found.stderr
    note = "2 of 4 processors for 4 partitions, about 340 changelog records to read (about 10 seconds)"
    assert note in planned.stdout
    for shown in (planned.stderr, found.stdout):
        assert "reads about 340 changelog records for it (about 10 seconds)" in " ".join(shown.split())


def test_compile_with_a_cluster_reports_another_count_of_an_internal_topic_that_is_read_by_name(
    headwater: Headwater,
    kafka: LocalBroker,
    names: tuple[str, str],
    topics: Callable[..., None],
    tmp_path: Path,
) -> None:
    id_, source = names
    repartition = f"{id_}-by-k-repartition"
    document = tmp_path / "app.yaml"
    text = document.read_text(encoding="utf-8")
    document.write_text(
        f"{text}  - stream: {{topic: {repartition}}}\n  - to: {source}-copy\n", encoding="utf-8"
    )
    topics(source, 3)
    topics(repartition, 7)

    for command in ("compile", "plan"):
        refused = headwater(command, "app.yaml", "--bootstrap-server", kafka.bootstrap_servers)
        assert refused.returncode != ExitCode.DONE, refused
        assert repartition in refused.stderr
        assert "7 partitions" in refused.stderr
