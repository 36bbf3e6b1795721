"""Fixes for documents without calls: a described text, a topology from code, topics of a cluster."""

import re
from collections.abc import Callable

from headwater.compiler.streams_config import LIBRARY_PARTITIONER, LIBRARY_SUPPLIER
from tests.advice.trial import Advice, Document, Trial, faults
from tests.advice.trials import CHANGELOG, COUNT, REPARTITION, begin, set_up
from tests.yaml_text import load_yaml

DESCRIBED = """
application: {id: orders, kafkaStreams: "4.3", config: {}}
describe:
  stores: {counts: {kind: timestampedKeyValue}}
  text: |
    Topologies:
       Sub-topology: 0
        Source: KSTREAM-SOURCE-0000000000 (topics: [orders-in])
          --> KSTREAM-KEY-SELECT-0000000001
        Processor: KSTREAM-KEY-SELECT-0000000001 (stores: [])
          --> by-k-repartition-filter
          <-- KSTREAM-SOURCE-0000000000
        Processor: by-k-repartition-filter (stores: [])
          --> by-k-repartition-sink
          <-- KSTREAM-KEY-SELECT-0000000001
        Sink: by-k-repartition-sink (topic: by-k-repartition)
          <-- by-k-repartition-filter

      Sub-topology: 1
        Source: by-k-repartition-source (topics: [by-k-repartition])
          --> KSTREAM-AGGREGATE-0000000002
        Processor: KSTREAM-AGGREGATE-0000000002 (stores: [counts])
          --> KTABLE-TOSTREAM-0000000006
          <-- by-k-repartition-source
        Processor: KTABLE-TOSTREAM-0000000006 (stores: [])
          --> KSTREAM-SINK-0000000007
          <-- KSTREAM-AGGREGATE-0000000002
        Sink: KSTREAM-SINK-0000000007 (topic: orders-out)
          <-- KTABLE-TOSTREAM-0000000006
"""
EXPORTED = """
application: {id: orders}
exported:
  application: {id: orders, kafkaStreams: "4.3.1", protocol: classic}
  subtopologies:
    "0":
      nodes:
        KSTREAM-SOURCE-0000000000: {source: [orders-in]}
        KSTREAM-KEY-SELECT-0000000001: {parents: [KSTREAM-SOURCE-0000000000]}
        by-k-repartition-filter: {parents: [KSTREAM-KEY-SELECT-0000000001]}
        by-k-repartition-sink: {parents: [by-k-repartition-filter], sink: by-k-repartition}
    "1":
      nodes:
        by-k-repartition-source: {source: [by-k-repartition]}
        KSTREAM-AGGREGATE-0000000002: {parents: [by-k-repartition-source], stores: [counts]}
        KTABLE-TOSTREAM-0000000006: {parents: [KSTREAM-AGGREGATE-0000000002]}
        KSTREAM-SINK-0000000007: {parents: [KTABLE-TOSTREAM-0000000006], sink: orders-out}
  repartitionTopics: {by-k-repartition: {}}
  stores: {counts: {kind: keyValue}}
  copartitioned: []
"""
OBSERVED = """
application: {id: orders, kafkaStreams: "4.3", protocol: classic}
observed:
  sources: {orders-in: 4}
  topics:
    by-k-repartition: {kind: repartition, partitions: 4}
    counts-changelog: {kind: changelog, partitions: 4}
  unknown: [subtopologies]
"""
_OF_WINDOWS = (
    "config: {cleanup.policy: 'compact,delete', message.timestamp.type: CreateTime, retention.ms: 172800000}"
)
WINDOWED = OBSERVED.replace(
    "{kind: changelog, partitions: 4}", f"{{kind: changelog, partitions: 4, {_OF_WINDOWS}}}"
)
_POLICY = "compact,delete"
_PRINTED = re.compile(r"`config: (\{.*?\})`")
_CREATED = {"message.timestamp.type": "CreateTime", "min.insync.replicas": 1}
_ONE_IN_SYNC = {
    "by-k-repartition": {
        "cleanup.policy": "delete",
        "segment.bytes": 52428800,
        "retention.ms": -1,
        **_CREATED,
    },
    "counts-changelog": {"cleanup.policy": "compact", **_CREATED},
}
SINK = COUNT.replace("topics: {}", "topics: {orders-out: {partitions: 4}}")


def _misconfigured(text: str, topic: str = CHANGELOG) -> Trial:
    """Return a stack whose document has this form, and a topic that a user has reconfigured."""
    trial = set_up(text)
    trial.cluster.configure(topic, cleanup_policy=_POLICY)
    return trial


def _configured(trial: Trial, topic: str, **config: str) -> Trial:
    trial.cluster.configure(topic, **config)
    return trial


def _override(trial: Trial, form: str) -> None:
    """Set the policy of the changelog in the document; an export writes there what the code sets."""
    trial.documents["orders"][form]["stores"]["counts"]["overrides"] = {"cleanup.policy": _POLICY}


def _observe(trial: Trial, name: str) -> None:
    """Declare the settings that a fix prints for an observed topic: they replace all others."""
    texts = (_PRINTED.search(fault.fix) for fault in faults(trial) if fault.topic == f"orders-{name}")
    config = load_yaml(next(text[1] for text in texts if text is not None))
    assert {"cleanup.policy", "message.timestamp.type"} <= config.keys()
    trial.documents["orders"]["observed"]["topics"][name]["config"] = config


def _observed_replicas(make: Callable[[str], Trial]) -> Trial:
    """Return a stack whose observed topics have one replica, and whose brokers require two in sync."""
    trial = make(OBSERVED.replace("partitions: 4}", "partitions: 4, replicationFactor: 1}"))
    trial.cluster.default_min_insync_replicas = 2
    return trial


def _replicate(trial: Trial) -> None:
    for name in ("by-k-repartition", "counts-changelog"):
        trial.documents["orders"]["observed"]["topics"][name]["replicationFactor"] = 2
        if f"orders-{name}" in trial.cluster.topics:
            trial.cluster.change(f"orders-{name}", replication_factor=2)


def _require_one(trial: Trial) -> None:
    for name, config in _ONE_IN_SYNC.items():
        trial.documents["orders"]["observed"]["topics"][name]["config"] = config


def _with_policy(policy: Document) -> Trial:
    trial = set_up(WINDOWED.replace("partitions: 4", "partitions: 4, replicationFactor: 1"))
    trial.policies.append(policy)
    return trial


def _set_observed(trial: Trial, key: str, value: object) -> None:
    trial.documents["orders"]["observed"]["topics"]["counts-changelog"]["config"][key] = value


def _sink_with_setting() -> Trial:
    trial = set_up(SINK)
    trial.cluster.configure("orders-out", compression_type="lz4")
    return trial


def _observed_with_default() -> Trial:
    trial = set_up(OBSERVED)
    trial.cluster.topic_defaults["retention.bytes"] = "1000"
    return trial


def _declare_size(trial: Trial) -> None:
    topic = trial.documents["orders"]["observed"]["topics"]["by-k-repartition"]
    topic["config"] = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.bytes": -1,
        "retention.ms": -1,
        "segment.bytes": 52428800,
    }


def _source_expanded() -> Trial:
    trial = set_up(EXPORTED)
    trial.cluster.change("orders-in", partitions=8)
    return trial


def _partition_statically(trial: Trial) -> None:
    """Let the application on the JVM, and the producers of its sources, partition statically."""
    trial.configure(
        default_client_supplier=LIBRARY_SUPPLIER,
        producer_partitioner_class=LIBRARY_PARTITIONER,
        producer_static_partitioner_class="initial-hash",
        producer_static_partitioner_initial_partitions="4",
        partition_autoscaling_enabled="true",
    )


FORMS = (
    Advice(
        says="set `partition.autoscaling.enabled: true` and `producer.partitioner.class`",
        make=_source_expanded,
        follow=_partition_statically,
    ),
    Advice(
        says='declare it below `describe.stores`: `counts: {overrides: {cleanup.policy: "compact,delete"}}`',
        make=lambda: _misconfigured(DESCRIBED),
        follow=lambda t: _override(t, "describe"),
    ),
    Advice(
        says="where store counts is created (`withLoggingEnabled`), and export the document again",
        make=lambda: _misconfigured(EXPORTED),
        follow=lambda t: _override(t, "exported"),
    ),
    Advice(
        says=f"declare it for {CHANGELOG} below `observed.topics`",
        make=lambda: _misconfigured(OBSERVED),
        follow=lambda t: _observe(t, "counts-changelog"),
    ),
    Advice(
        says=f"declare it for {REPARTITION} below `observed.topics`",
        make=lambda: _misconfigured(OBSERVED, REPARTITION),
        follow=lambda t: _observe(t, "by-k-repartition"),
    ),
    Advice(
        says="Declare it (below `observed.topics`: `config: {cleanup.policy: compact, "
        "message.timestamp.type: CreateTime, retention.bytes: 1000}`)",
        make=lambda: _configured(set_up(OBSERVED), CHANGELOG, retention_bytes="1000"),
        follow=lambda t: _observe(t, "counts-changelog"),
    ),
    Advice(
        says="Declare it (`config` of the topic below `topics`), or remove it with `kafka-configs.sh`",
        make=_sink_with_setting,
        follow=lambda t: t.documents["orders"]["topics"]["orders-out"].update(
            config={"compression.type": "lz4"}
        ),
    ),
    Advice(
        says="Set `replicationFactor` of each topic below `observed.topics` to 2 or more",
        make=lambda: _observed_replicas(begin),
        follow=_replicate,
    ),
    Advice(
        says="or set `min.insync.replicas` in the `config` (with all of its settings) of each topic below "
        "`observed.topics` to 1 in the document",
        make=lambda: _observed_replicas(begin),
        follow=_require_one,
    ),
    Advice(
        says="and declare the same `replicationFactor` of orders-by-k-repartition below `observed.topics`",
        make=lambda: _observed_replicas(set_up),
        follow=_replicate,
    ),
    Advice(
        says="Set its `replicationFactor`",
        make=lambda: _with_policy({"replicationFactor": {"min": 2}}),
        follow=_replicate,
    ),
    Advice(
        says=f"of {CHANGELOG} below `observed.topics`, as the application does in its code",
        make=lambda: _with_policy({"retention": {"max": "25h", "kinds": ["changelog"]}}),
        follow=lambda t: _set_observed(t, "retention.ms", 3600000),
    ),
    Advice(
        says="Set `compression.type` in the `config`",
        make=lambda: _with_policy(
            {"topicConfig": {"require": {"compression.type": "lz4"}, "kinds": ["changelog"]}}
        ),
        follow=lambda t: _set_observed(t, "compression.type", "lz4"),
    ),
    Advice(
        says=f"retention.bytes for each of these topics below `observed.topics`, for {REPARTITION} `config: "
        "{cleanup.policy: delete, message.timestamp.type: CreateTime, retention.bytes: -1, retention.ms: -1, "
        "segment.bytes: 52428800}`",
        make=_observed_with_default,
        follow=_declare_size,
    ),
)
