"""Real Kafka Streams applications with the library, in each situation of internal topics."""

from collections.abc import Callable

import attrs
import pytest

from headwater.model.versions import SUPPORTED
from headwater.toolchain.broker import Broker, Settings
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, OLDEST, Applications
from tests.streams_library.conftest import with_versions

OBSERVED = "headwater.streamstest.ObservedClients"
pytestmark = [pytest.mark.broker, pytest.mark.oracle]

_with_oldest_and_newest = with_versions(OLDEST, NEWEST)
_with_newest = with_versions(NEWEST)
_OTHER_VERSIONS = tuple(each for each in map(str, SUPPORTED) if each not in (OLDEST, NEWEST))


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


@pytest.mark.parametrize(
    "versions",
    [(OLDEST, NEWEST), pytest.param(_OTHER_VERSIONS, marks=pytest.mark.soak)],
    ids=["usual", "other"],
)
def test_only_producers_create_source_topics_on_brokers_that_create_topics(
    applications_of: Callable[[str], Applications],
    own_broker: Callable[..., Broker],
    unique: Callable[[str], str],
    versions: tuple[str, ...],
) -> None:
    with own_broker(Settings(overrides={"auto.create.topics.enable": "true"})) as broker:
        for version in versions:
            jvm = applications_of(version)
            application = TestedApplication(unique("shop"), broker.bootstrap_servers)
            jvm.start(application.id, application.topology, application.configs())
            assert jvm.failed(application.id).exception == "MissingSourceTopicException", version
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
    for configs in (without, with_library, with_library):
        jvm.start(application.id, application.topology, configs)
        read.append(jvm.wait(application.id, lambda event: event.kind == "offsets").words[0])
        jvm.running(application.id)
        jvm.close(application.id)
    assert read == [f"{application.changelog}-0,{application.changelog}-1"] * 3


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
