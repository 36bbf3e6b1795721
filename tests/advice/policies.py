"""Fixes of policies."""

from tests.advice.trial import Advice, Document, Trial, steps
from tests.advice.trials import CHANGELOG, COUNT, GENERATED, REPARTITION, begin, changed, manual, set_up

SINK = COUNT.replace("topics: {}", "topics: {orders-out: {partitions: 4}}")
WINDOWED = COUNT.replace("  - count:", "  - windowedBy: {tumbling: {size: 2h}}\n  - count:")


def _limited(trial: Trial, *policies: Document) -> Trial:
    trial.policies += policies
    return trial


def _with_defaults(trial: Trial) -> Trial:
    trial.cluster.topic_defaults["retention.ms"] = "604800000"
    return trial


def _relax(trial: Trial, key: str, **options: object) -> None:
    next(policy for policy in trial.policies if key in policy)[key].update(options)


def _rename_application(trial: Trial) -> None:
    trial.documents.clear()
    trial.declare(COUNT.replace("id: orders,", "id: shop-orders,"))


def _explicit(trial: Trial, count: int) -> None:
    steps = trial.documents["orders"]["topology"]
    at = next(index for index, step in enumerate(steps) if "groupByKey" in step)
    steps[at : at + 1] = [{"repartition": {"name": "by-k", "partitions": count}}, {"groupByKey": None}]


def _rename_grouping(trial: Trial) -> None:
    trial.empty(REPARTITION)
    trial.step("groupByKey")["groupByKey"] = {"name": "shop-by-k"}


def _rename_sink(trial: Trial) -> None:
    trial.documents["orders"]["topics"] = {"shop-out": {"partitions": 4}}
    trial.step("to")["to"] = "shop-out"


def _configured(trial: Trial, **config: str) -> Trial:
    for name in (REPARTITION, CHANGELOG):
        trial.cluster.configure(name, **config)
    return trial


def _without_setting(trial: Trial, key: str) -> None:
    for name in (REPARTITION, CHANGELOG):
        config = trial.cluster.topics[name].config
        trial.cluster.change(name, config={each: value for each, value in config.items() if each != key})
    trial.settings()["config"].pop(f"topic.{key}", None)


def _in_sync(trial: Trial) -> None:
    trial.configure(topic_min_insync_replicas="2")
    _configured(trial, min_insync_replicas="2")


def _compressed(trial: Trial) -> None:
    trial.configure(topic_compression_type="lz4")
    _configured(trial, compression_type="lz4")


def _sink_settings(trial: Trial, **settings: object) -> None:
    trial.documents["orders"]["topics"]["orders-out"].update(settings)


def _one_after_another(trial: Trial) -> None:
    document = trial.documents.pop("sales")
    trial.up()
    trial.documents["sales"] = document


INTERNAL = {"kinds": ["repartition", "changelog"]}
IN_SYNC: Document = {"minInsyncReplicas": {"min": 2, **INTERNAL}}
LZ4: Document = {"topicConfig": {"require": {"compression.type": "lz4"}, **INTERNAL}}
FORBIDDEN: Document = {"topicConfig": {"forbid": ["compression.type"]}}
SHORT: Document = {"retention": {"max": "1h", "kinds": ["managed"]}}

POLICIES = (
    Advice(
        says="Rename the application before it is first set up",
        make=lambda: _limited(begin(), {"applicationId": {"pattern": "shop-.*"}}),
        follow=_rename_application,
    ),
    Advice(
        says="Rename the store before it is first set up",
        make=lambda: _limited(begin(), {"storeName": {"pattern": "shop-.*"}}),
        follow=lambda t: t.step("count").update(count={"materialized": "shop-counts"}),
    ),
    Advice(
        says="Rename the operator. Drain the old topic first",
        make=lambda: _limited(set_up(), {"repartitionName": {"pattern": "shop-.*"}}),
        follow=_rename_grouping,
    ),
    Advice(
        says="Rename the topic, also for its readers",
        make=lambda: _limited(set_up(SINK), {"managedTopicName": {"pattern": "shop-.*"}}),
        follow=_rename_sink,
    ),
    Advice(
        says="Name the operator or the store before the application is first set up",
        make=lambda: _limited(begin(GENERATED), {"namedResources": None}),
        follow=steps(
            lambda t: t.step("groupByKey").update(groupByKey={"name": "by-k"}),
            lambda t: t.step("count").update(count={"materialized": "counts"}),
        ),
    ),
    Advice(
        says="have the application excluded from the policy (`applications`)",
        make=lambda: _limited(set_up(GENERATED), {"namedResources": {}}),
        follow=lambda t: _relax(t, "namedResources", applications="(?!orders).*"),
    ),
    Advice(
        says="Before the first setup, call repartition() with `partitions` in front of the operator",
        make=lambda: _limited(begin(), {"topicPartitions": {"max": 2}}),
        follow=lambda t: _explicit(t, 2),
    ),
    Advice(
        says="Later, have the limit raised for this application",
        make=lambda: _limited(set_up(), {"topicPartitions": {"max": 2}}),
        follow=lambda t: _relax(t, "topicPartitions", applications="(?!orders).*"),
    ),
    Advice(
        says="Before the first setup, add partitions to the source topics",
        make=lambda: _limited(begin(), {"topicPartitions": {"min": 8}}),
        follow=lambda t: t.cluster.change("orders-in", partitions=8),
    ),
    Advice(
        says="or call repartition() with a larger explicit count in front of the operator",
        make=lambda: _limited(begin(), {"topicPartitions": {"min": 8}}),
        follow=lambda t: _explicit(t, 8),
    ),
    Advice(
        says="have the limit lowered for it",
        make=lambda: _limited(set_up(), {"topicPartitions": {"min": 8}}),
        follow=lambda t: _relax(t, "topicPartitions", applications="(?!orders).*"),
    ),
    Advice(
        says="Remove repartitions and stores that are not needed",
        make=lambda: _limited(begin(), {"applicationPartitions": {"max": 4}}),
        follow=lambda t: t.documents["orders"]["topology"].pop(1),
    ),
    Advice(
        says="or have the limit raised for this application",
        make=lambda: _limited(set_up(), {"applicationPartitions": {"max": 4}}),
        follow=lambda t: _relax(t, "applicationPartitions", max=8),
    ),
    Advice(
        says="Set the config `replication.factor`.",
        make=lambda: _limited(begin(replication_factor="1"), {"replicationFactor": {"min": 2}}),
        follow=lambda t: t.configure(replication_factor="2"),
    ),
    Advice(
        says="For an existing topic, also run `kafka-reassign-partitions.sh`",
        make=lambda: _limited(set_up(replication_factor="1"), {"replicationFactor": {"min": 2}}),
        follow=steps(
            lambda t: t.configure(replication_factor="2"),
            lambda t: t.cluster.change(REPARTITION, replication_factor=2),
            lambda t: t.cluster.change(CHANGELOG, replication_factor=2),
        ),
    ),
    Advice(
        says="Set its `replicationFactor`.",
        make=lambda: _unset_sink({"replicationFactor": {"min": 2}}, replicationFactor=1),
        follow=lambda t: _sink_settings(t, replicationFactor=2),
    ),
    Advice(
        says="Set `topic.min.insync.replicas` in the application's config.",
        make=lambda: _limited(set_up(), IN_SYNC),
        follow=lambda t: t.configure(topic_min_insync_replicas="2"),
    ),
    Advice(
        says="--add-config min.insync.replicas=2`: no run changes it",
        make=lambda: _limited(manual(), IN_SYNC),
        follow=_in_sync,
    ),
    Advice(
        says="Set `min.insync.replicas` of the managed topic",
        make=lambda: _limited(set_up(SINK), {"minInsyncReplicas": {"min": 2, "kinds": ["managed"]}}),
        follow=lambda t: _sink_settings(t, config={"min.insync.replicas": 2}),
    ),
    Advice(
        says="Set `topic.compression.type` in the application's config.",
        make=lambda: _limited(set_up(), LZ4),
        follow=lambda t: t.configure(topic_compression_type="lz4"),
    ),
    Advice(
        says="--add-config compression.type=lz4`: no run changes it",
        make=lambda: _limited(manual(), LZ4),
        follow=_compressed,
    ),
    Advice(
        says="Set `compression.type` of the managed topic",
        make=lambda: _limited(
            set_up(SINK), {"topicConfig": {"require": {"compression.type": "lz4"}, "kinds": ["managed"]}}
        ),
        follow=lambda t: _sink_settings(t, config={"compression.type": "lz4"}),
    ),
    *(
        Advice(
            says=says,
            make=lambda: _limited(set_up(topic_compression_type="lz4"), FORBIDDEN),
            follow=lambda t: _without_setting(t, "compression.type"),
        )
        for says in (
            "Remove `topic.compression.type` in the application's config, and from the topic:",
            "or the store's override, and from the topic: `kafka-configs.sh",
        )
    ),
    Advice(
        says="Set `retention.ms` of the topic",
        make=lambda: _limited(_with_defaults(set_up(SINK)), SHORT),
        follow=lambda t: _sink_settings(t, config={"retention.ms": 3600000}),
    ),
    Advice(
        says="--add-config retention.ms=MILLISECONDS`: no run changes it",
        make=lambda: _limited(_with_defaults(manual(text=SINK)), SHORT),
        follow=steps(
            lambda t: _sink_settings(t, config={"retention.ms": 3600000}),
            lambda t: t.cluster.configure("orders-out", retention_ms="3600000"),
        ),
    ),
    Advice(
        says="Remove this kind from the policy's `kinds`",
        make=lambda: _limited(set_up(), {"retention": {"max": "7d"}}),
        follow=lambda t: _relax(t, "retention", kinds=["managed"]),
    ),
    Advice(
        says="or set `topic.retention.ms` in the application's config and accept that unread records may be "
        "deleted",
        make=lambda: _limited(set_up(), {"retention": {"max": "7d"}}),
        follow=lambda t: t.configure(topic_retention_ms="604800000"),
    ),
    Advice(
        says="Change the window, its grace or the store's retention",
        make=lambda: _limited(begin(WINDOWED), {"retention": {"max": "25h", "kinds": ["changelog"]}}),
        follow=lambda t: t.step("windowedBy").update(windowedBy={"tumbling": {"size": "1h"}}),
    ),
    Advice(
        says="or `windowstore.changelog.additional.retention.ms`",
        make=lambda: _limited(begin(WINDOWED), {"retention": {"max": "25h", "kinds": ["changelog"]}}),
        follow=lambda t: t.configure(windowstore_changelog_additional_retention_ms="3600000"),
    ),
    Advice(
        says="raise `createdTopics` for this run",
        make=lambda: _limited(begin(), {"blastRadius": {"createdTopics": 1}}),
        follow=lambda t: _relax(t, "blastRadius", createdTopics=2),
    ),
    Advice(
        says="or change the applications one after another",
        make=lambda: _limited(
            changed(begin(), lambda t: t.declare(COUNT.replace("id: orders,", "id: sales,"))),
            {"blastRadius": {"createdTopics": 2}},
        ),
        follow=_one_after_another,
    ),
)


def _unset_sink(policy: Document, **settings: object) -> Trial:
    trial = begin(SINK)
    trial.empty("orders-out")
    trial.delete("orders-out")
    _sink_settings(trial, **settings)
    return changed(trial, lambda t: t.policies.append(policy))
