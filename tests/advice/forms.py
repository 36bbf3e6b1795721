"""Fixes for documents without calls: a described text, a topology from code, topics of a cluster."""

from headwater.compiler.streams_config import LIBRARY_PARTITIONER, LIBRARY_SUPPLIER
from tests.advice.trial import Advice, Trial
from tests.advice.trials import CHANGELOG, REPARTITION, set_up

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
_POLICY = "compact,delete"


def _misconfigured(text: str, topic: str = CHANGELOG) -> Trial:
    """Return a stack whose document has this form, and a topic that a user has reconfigured."""
    trial = set_up(text)
    trial.cluster.configure(topic, cleanup_policy=_POLICY)
    return trial


def _override(trial: Trial, form: str) -> None:
    """Set the policy of the changelog in the document; an export writes there what the code sets."""
    trial.documents["orders"][form]["stores"]["counts"]["overrides"] = {"cleanup.policy": _POLICY}


def _observe(trial: Trial, name: str) -> None:
    topic = trial.documents["orders"]["observed"]["topics"][name]
    topic["config"] = dict(trial.cluster.topics[f"orders-{name}"].config)


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
        says=f"retention.bytes for each of these topics below `observed.topics`, for {REPARTITION} `config: "
        "{cleanup.policy: delete, message.timestamp.type: CreateTime, retention.bytes: -1, retention.ms: -1, "
        "segment.bytes: 52428800}`",
        make=_observed_with_default,
        follow=_declare_size,
    ),
)
