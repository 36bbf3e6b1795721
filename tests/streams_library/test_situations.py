"""Real Kafka Streams applications with the library, in each situation of internal topics."""

from collections.abc import Callable

import attrs
import pytest

from headwater.model.offset_metadata import RESHARD_KEY, MoveMark, MovePhase, OffsetMetadata
from headwater.model.versions import SUPPORTED
from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.broker.local import LocalBroker
from tests.contract.real_cluster import RealCluster
from tests.groups import delete_group
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, OLDEST, SUPPLIER, Applications

OBSERVED = "headwater.streamstest.ObservedClients"
pytestmark = [pytest.mark.broker, pytest.mark.oracle]


def _with_versions(*usual: str) -> pytest.MarkDecorator:
    """Run a test with these versions, and with all other ones in the soak tests."""
    return pytest.mark.parametrize(
        "version",
        [
            str(version) if str(version) in usual else pytest.param(str(version), marks=pytest.mark.soak)
            for version in SUPPORTED
        ],
    )


_with_oldest_and_newest = _with_versions(OLDEST, NEWEST)
_with_newest = _with_versions(NEWEST)


@pytest.fixture
def jvm(applications_of: Callable[[str], Applications], version: str) -> Applications:
    return applications_of(version)


@pytest.fixture
def application(kafka: LocalBroker, unique: Callable[[str], str]) -> TestedApplication:
    application = TestedApplication(unique("shop"), kafka.bootstrap_servers)
    application.create(application.source, 2)
    application.create(application.sink, 2)
    return application


@_with_oldest_and_newest
def test_topics_are_set_up_by_initialize_only_when_setup_is_manual(
    jvm: Applications, application: TestedApplication
) -> None:
    manual = application.configs(internal_topics_setup="manual")
    jvm.start(application.id, application.topology, manual)
    missing = jvm.failed(application.id)
    assert missing.exception == "MissingInternalTopicsException"
    assert missing.topics == application.internal_topics
    assert application.counts(*application.internal_topics) == {}
    assert jvm.initialize(application.id, application.topology, manual).kind == "initialized"
    assert application.counts(*application.internal_topics) == dict.fromkeys(application.internal_topics, 2)
    assert application.config(application.changelog, "cleanup.policy") == "compact"
    again = jvm.initialize(application.id, application.topology, manual)
    assert again.exception == "InternalTopicsAlreadySetupException"
    application.delete(application.changelog)
    incomplete = jvm.initialize(application.id, application.topology, manual)
    assert incomplete.exception == "MissingInternalTopicsException"
    assert incomplete.topics == [application.changelog]
    completed = jvm.initialize(application.id, application.topology, manual, if_incomplete=True)
    assert completed.kind == "initialized"
    jvm.start(application.id, application.topology, manual)
    jvm.running(application.id)
    jvm.close(application.id)


@_with_newest
def test_a_missing_source_topic_is_an_error_of_initialize(
    jvm: Applications, application: TestedApplication
) -> None:
    application.delete(application.source)
    refused = jvm.initialize(application.id, application.topology, application.configs())
    assert refused.exception == "MissingSourceTopicException"
    assert application.source in refused.message


@_with_oldest_and_newest
def test_only_producers_create_source_topics_on_brokers_that_create_topics(
    jvm: Applications, own_broker: Callable[..., Broker], unique: Callable[[str], str]
) -> None:
    with own_broker(Settings(overrides={"auto.create.topics.enable": "true"})) as broker:
        application = TestedApplication(unique("shop"), broker.bootstrap_servers)
        jvm.start(application.id, application.topology, application.configs())
        assert jvm.failed(application.id).exception == "MissingSourceTopicException"
        jvm.close(application.id)
        assert application.counts(application.source, *application.internal_topics) == {}
        application.produce(1)
        assert application.counts(application.source) == {application.source: 1}


@_with_newest
def test_missing_topics_are_created_with_a_warning_when_setup_is_automatic(
    jvm: Applications, application: TestedApplication
) -> None:
    jvm.start(application.id, application.topology, application.configs(internal_topics_setup="automatic"))
    jvm.running(application.id)
    assert len(application.counts(*application.internal_topics)) == 2
    assert [line for line in jvm.log if "do not exist" in line and application.changelog in line]
    jvm.close(application.id)


@_with_oldest_and_newest
def test_a_running_application_follows_its_source_topic(
    jvm: Applications, application: TestedApplication
) -> None:
    """With exactly once, and while records arrive."""
    configs = application.configs(
        partition_autoscaling_enabled="true", processing_guarantee="exactly_once_v2"
    )
    jvm.start(application.id, application.topology, configs)
    jvm.await_tasks(application.id, 4)
    application.produce(50)
    application.expand(application.source, 4)
    jvm.await_tasks(application.id, 8)
    assert application.counts(*application.internal_topics) == dict.fromkeys(application.internal_topics, 4)
    metrics = jvm.ask(application.id, "metrics")
    for subtopology in "01":
        for kind in ("current", "expected"):
            bean = f"kafka.streams:type=stream-subtopology-metrics,subtopology-id={subtopology}"
            assert metrics[f"{bean} {kind}-subtopology-parallelism"] == "4"
    assert {value for name, value in metrics.items() if name.endswith("num-autoscaling-failures")} == {"0"}
    application.produce(50)
    application.await_true(lambda: application.end_offsets(application.sink) > 0, "records are counted")
    jvm.close(application.id)


@_with_newest
@pytest.mark.parametrize("clocks", [1, 150], ids=["plain", "deflated"])
def test_an_application_does_not_start_while_a_reshard_is_not_complete(
    jvm: Applications, application: TestedApplication, clocks: int
) -> None:
    """It expands no topic, and does not start at the last step either, when all counts are right."""
    configs = application.configs(partition_autoscaling_enabled="true")
    jvm.initialize(application.id, application.topology, configs)
    names = {f"{RESHARD_KEY}before/topic-{number}": number for number in range(clocks)}
    text = OffsetMetadata(0, names).encode(-1, mark=MoveMark(MovePhase.CLEAR, 2, 4))
    RealCluster(application.bootstrap_servers).commit(application.id, application.changelog, {0: text})
    for sources in (2, 4):
        if sources == 4:
            application.expand(application.source, 4)
        jvm.start(application.id, application.topology, configs)
        failed = jvm.failed(application.id)
        assert failed.exception == "MisconfiguredInternalTopicException"
        assert f"A headwater reshard of {application.id} is not complete." in failed.message
        counts = application.counts(*application.internal_topics)
        assert counts == dict.fromkeys(application.internal_topics, 2)
        jvm.close(application.id)
    application.await_true(
        lambda: delete_group(application.admin, application.id), "the group has no members"
    )
    jvm.start(application.id, application.topology, configs)
    jvm.await_tasks(application.id, 8)
    jvm.close(application.id)


@_with_newest
@pytest.mark.parametrize(
    ("setup", "exception"),
    [("automatic", "StreamsException"), ("manual", "MisconfiguredInternalTopicException")],
)
def test_too_few_partitions_are_an_error_with_a_hint_without_autoscaling(
    jvm: Applications, application: TestedApplication, setup: str, exception: str
) -> None:
    configs = application.configs(internal_topics_setup=setup)
    jvm.initialize(application.id, application.topology, configs)
    jvm.start(application.id, application.topology, configs)
    jvm.await_tasks(application.id, 4)
    application.expand(application.source, 4)
    failed = jvm.failed(application.id)
    assert failed.exception == exception
    assert "partition.autoscaling.enabled=true" in failed.message
    assert f"--topic {application.repartition} --partitions 4" in failed.message
    jvm.close(application.id)


@_with_newest
@pytest.mark.parametrize("setup", ["automatic", "manual"])
def test_too_many_partitions_are_always_an_error(
    jvm: Applications, application: TestedApplication, setup: str
) -> None:
    configs = application.configs(internal_topics_setup=setup, partition_autoscaling_enabled="true")
    jvm.initialize(application.id, application.topology, configs)
    application.expand(application.changelog, 5)
    jvm.start(application.id, application.topology, configs)
    assert "Partitions cannot be removed" in jvm.failed(application.id).message
    jvm.close(application.id)


@_with_newest
def test_a_config_that_loses_data_is_an_error_or_corrected(
    jvm: Applications, application: TestedApplication
) -> None:
    manual = application.configs(internal_topics_setup="manual")
    jvm.initialize(application.id, application.topology, manual)
    application.set_config(application.changelog, "cleanup.policy", "delete")
    jvm.start(application.id, application.topology, manual)
    failed = jvm.failed(application.id)
    assert failed.exception == "MisconfiguredInternalTopicException"
    assert f"--topic {application.changelog} --add-config 'cleanup.policy=compact'" in failed.message
    jvm.close(application.id)
    jvm.start(application.id, application.topology, application.configs(internal_topics_setup="automatic"))
    jvm.running(application.id)
    assert application.config(application.changelog, "cleanup.policy") == "compact"
    jvm.close(application.id)


@_with_newest
def test_no_record_is_processed_after_a_changelog_was_deleted(
    jvm: Applications, application: TestedApplication
) -> None:
    manual = application.configs(internal_topics_setup="manual")
    jvm.initialize(application.id, application.topology, manual)
    jvm.start(application.id, application.topology, manual)
    application.produce(20)
    jvm.running(application.id)
    application.await_true(lambda: application.end_offsets(application.sink) > 0, "records are counted")
    jvm.close(application.id)
    application.delete(application.changelog)
    counted = application.end_offsets(application.sink)
    application.produce(20)
    jvm.start(application.id, application.topology, manual)
    failed = jvm.failed(application.id)
    assert (failed.exception, failed.topics) == ("MissingInternalTopicsException", [application.changelog])
    assert application.end_offsets(application.sink) == counted
    assert application.counts(application.changelog) == {}
    jvm.close(application.id)


@_with_newest
def test_an_unchanged_application_reads_the_same_lags_with_and_without_the_library(
    jvm: Applications, application: TestedApplication
) -> None:
    """Topics that count as new have no lag: the assignor reads no end offset of them."""
    without = application.configs(default_client_supplier=OBSERVED)
    with_library = application.configs(
        internal_topics_setup="manual",
        partition_autoscaling_enabled="true",
        headwater_delegate_client_supplier=OBSERVED,
    )
    jvm.initialize(application.id, application.topology, application.configs())
    read = []
    for configs in (without, with_library, with_library, without):
        jvm.start(application.id, application.topology, configs)
        read.append(jvm.wait(application.id, lambda event: event.kind == "offsets").words[0])
        jvm.running(application.id)
        jvm.close(application.id)
    assert read == [f"{application.changelog}-0,{application.changelog}-1"] * 4


@_with_newest
def test_instances_with_and_without_the_library_are_in_one_group(
    jvm: Applications, application: TestedApplication
) -> None:
    """From no supplier to the supplier and back; the topics are expanded meanwhile."""
    old = application.configs(default_client_supplier="")
    new = application.configs(internal_topics_setup="manual", partition_autoscaling_enabled="true")
    first, second, third = (f"{application.id}-{number}" for number in (1, 2, 3))
    jvm.start(first, application.topology, old)
    jvm.await_tasks(first, 4)
    jvm.start(second, application.topology, new)
    jvm.await_tasks(second, 2)
    jvm.close(first)
    jvm.await_tasks(second, 4)
    application.expand(application.source, 4)
    jvm.await_tasks(second, 8)
    jvm.start(third, application.topology, old)
    jvm.await_tasks(third, 4)
    jvm.close(second)
    jvm.await_tasks(third, 8)
    jvm.close(third)


@_with_newest
def test_a_failed_expansion_is_retried_and_then_given_up_once(
    jvm: Applications, application: TestedApplication
) -> None:
    """The application continues with the partitions that it has."""
    configs = application.configs(
        partition_autoscaling_enabled="true",
        partition_autoscaling_timeout_ms="1500",
        headwater_delegate_client_supplier=OBSERVED,
        test_fault="fail",
    )
    jvm.start(application.id, application.topology, configs)
    jvm.await_tasks(application.id, 4)
    application.expand(application.source, 4)
    jvm.wait(application.id, lambda event: event.kind == "expanding")
    application.await_true(
        lambda: any("Gave up the expansion" in line and application.id in line for line in jvm.log), "gave up"
    )
    jvm.await_tasks(application.id, 4)
    application.produce(20)
    application.await_true(lambda: application.end_offsets(application.sink) > 0, "records are counted")
    metrics = jvm.ask(application.id, "metrics")
    assert [
        value
        for name, value in metrics.items()
        if name.endswith("num-autoscaling-failures") and application.id in name
    ] == ["1"]
    bean = "kafka.streams:type=stream-subtopology-metrics,subtopology-id=0"
    assert metrics[f"{bean} current-subtopology-parallelism"] == "2"
    assert metrics[f"{bean} expected-subtopology-parallelism"] == "4"
    jvm.close(application.id)


@_with_newest
def test_counts_continue_after_an_expansion_with_static_partitioning(
    jvm: Applications, application: TestedApplication
) -> None:
    configs = application.configs(
        internal_topics_setup="manual",
        partition_autoscaling_enabled="true",
        processing_guarantee="exactly_once_v2",
        producer_partitioner_class="io.headwater.streams.partitioning.StaticPartitioner",
        producer_static_partitioner_class="initial-hash",
        producer_static_partitioner_initial_partitions="2",
    )
    jvm.initialize(application.id, application.topology, configs)
    jvm.start(application.id, application.topology, configs)
    jvm.await_tasks(application.id, 4)
    application.produce_static(110, initial=2)
    application.expand(application.source, 5)
    application.produce_static(110, initial=2)
    jvm.await_tasks(application.id, 10)
    application.produce_static(110, initial=2)
    expected = {f"value-{number}": 30 for number in range(11)}
    application.await_true(lambda: application.totals() == expected, "all records are counted once")
    jvm.close(application.id)


@_with_newest
def test_a_topic_that_was_deleted_and_re_created_stops_a_running_application(
    jvm: Applications, application: TestedApplication
) -> None:
    manual = application.configs(internal_topics_setup="manual", partition_autoscaling_enabled="true")
    jvm.initialize(application.id, application.topology, manual)
    jvm.start(application.id, application.topology, manual)
    jvm.await_tasks(application.id, 4)
    application.delete(application.changelog)
    application.create(application.changelog, 2, {"cleanup.policy": "compact"})
    application.expand(application.source, 3)
    failed = jvm.failed(application.id)
    assert (failed.exception, failed.topics) == ("MissingInternalTopicsException", [application.changelog])
    assert "deleted and re-created" in failed.message
    jvm.close(application.id)


@_with_newest
def test_a_retention_that_is_too_short_is_an_error(jvm: Applications, application: TestedApplication) -> None:
    windows = attrs.evolve(application, kind="windows")
    manual = windows.configs(internal_topics_setup="manual")
    jvm.initialize(windows.id, windows.topology, manual)
    assert windows.config(windows.changelog, "retention.ms") == "90000000"
    windows.set_config(windows.changelog, "retention.ms", "90000001")
    jvm.start(windows.id, windows.topology, manual)
    jvm.running(windows.id)
    jvm.close(windows.id)
    windows.set_config(windows.changelog, "retention.ms", "3600000")
    jvm.start(windows.id, windows.topology, manual)
    assert "Set retention.ms=90000000" in jvm.failed(windows.id).message
    jvm.close(windows.id)


@_with_newest
def test_an_application_without_internal_topics_needs_nothing(
    jvm: Applications, application: TestedApplication
) -> None:
    stateless = attrs.evolve(application, kind="stateless")
    manual = stateless.configs(internal_topics_setup="manual", partition_autoscaling_enabled="true")
    assert jvm.initialize(stateless.id, stateless.topology, manual).kind == "initialized"
    jvm.start(stateless.id, stateless.topology, manual)
    jvm.await_tasks(stateless.id, 2)
    stateless.expand(stateless.source, 4)
    jvm.await_tasks(stateless.id, 4)
    jvm.close(stateless.id)


@_with_newest
def test_the_streams_protocol_refuses_the_start(jvm: Applications, application: TestedApplication) -> None:
    configs = application.configs(internal_topics_setup="manual", group_protocol="streams")
    jvm.start(application.id, application.topology, configs)
    refused = jvm.failed(application.id)
    assert refused.kind == "refused"
    assert "the brokers create the internal topics" in f"{refused.message} {refused.words[3]}"


@_with_newest
@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("internal.topics.setup", "none", "must be automatic or manual"),
        ("internal.topics.setup", "MANUAL", "must be automatic or manual"),
        ("partition.autoscaling.enabled", "yes", "must be true or false"),
        ("partition.autoscaling.timeout.ms", "-1", "0 or more"),
        ("partition.autoscaling.timeout.ms", "15 min", "0 or more"),
        ("headwater.delegate.client.supplier", "com.acme.None", "must be a class on the class path"),
        ("headwater.delegate.client.supplier", "java.lang.String", "must be a class on the class path"),
        ("headwater.delegate.client.supplier", SUPPLIER, "must name the client supplier"),
    ],
)
def test_a_wrong_config_refuses_the_start(
    jvm: Applications, application: TestedApplication, name: str, value: str, part: str
) -> None:
    jvm.start(application.id, application.topology, {**application.configs(), name: value})
    refused = jvm.failed(application.id)
    assert refused.kind == "refused"
    assert name in f"{refused.message} {refused.words[3]}"
    assert part in f"{refused.message} {refused.words[3]}"
