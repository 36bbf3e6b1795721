"""Errors of real Kafka Streams applications with the library: what stops them, and what they say."""

import attrs
import pytest

from headwater.model.offset_metadata import RESHARD_KEY, MoveMark, MovePhase, OffsetMetadata
from tests.contract.real_cluster import RealCluster
from tests.groups import delete_group
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, SUPPLIER, Applications
from tests.streams_library.conftest import with_versions

pytestmark = [pytest.mark.broker, pytest.mark.oracle]

_with_newest = with_versions(NEWEST)


@_with_newest
def test_a_missing_source_topic_is_an_error_of_initialize(
    jvm: Applications, application: TestedApplication
) -> None:
    application.delete(application.source)
    refused = jvm.initialize(application.id, application.topology, application.configs())
    assert refused.exception == "MissingSourceTopicException"
    assert application.source in refused.message


@_with_newest
def test_an_application_does_not_start_while_a_reshard_is_not_complete(
    jvm: Applications, application: TestedApplication
) -> None:
    """It does not start at the last step either, when all counts are right, and expands no topic.

    The journal is plain text, or deflated if it is long.
    """
    configs = application.configs(partition_autoscaling_enabled="true")
    jvm.initialize(application.id, application.topology, configs)
    cluster = RealCluster(application.bootstrap_servers)
    for sources, clocks in ((2, 1), (4, 150)):
        names = {f"{RESHARD_KEY}before/topic-{number}": number for number in range(clocks)}
        text = OffsetMetadata(0, names).encode(-1, mark=MoveMark(MovePhase.CLEAR, 2, 4))
        cluster.commit(application.id, application.changelog, {0: text})
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
