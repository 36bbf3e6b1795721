"""What kinds of clusters refuse, force and fix: managed services, and brokers that are not Apache Kafka's.

The tables say what the vendors document (`source`). They decide what Headwater declares. Brokers validate
each plan in addition, so a setting that a table does not know is refused before anything changes.
"""

from collections.abc import Mapping, Sequence

import attrs

TUNING = frozenset({"segment.bytes"})
"""Settings that Kafka Streams sends itself and that change only the sizes of files: they can be omitted."""
RELIED_ON = frozenset({"cleanup.policy", "min.compaction.lag.ms", "retention.ms"})
"""Settings that decide which records Kafka removes: Kafka Streams relies on their values."""


@attrs.frozen(kw_only=True)
class ClusterProfile:
    """One kind of cluster. With `settable`, each other setting is refused.

    `limits` is setting → its least and its largest value.
    """

    name: str
    title: str
    source: str
    settable: frozenset[str] | None = None
    refused: frozenset[str] = frozenset()
    forced: Mapping[str, str] = attrs.field(factory=dict)
    """Settings that internal topics and managed sinks get, whatever Kafka Streams sends."""
    limits: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    replication_factor: int | None = None
    """The only number of replicas that the cluster accepts."""
    accepts_similar_names: bool = False
    """Whether the names of two topics may differ only in `.` and `_`."""

    def refuses(self, key: str) -> bool:
        """Return whether the cluster refuses a topic that sets `key`, or ignores the setting."""
        return key in self.refused or (self.settable is not None and key not in self.settable)


_AWS = "https://docs.aws.amazon.com/msk/latest/developerguide"
_FILES = (
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "index.interval.bytes",
    "preallocate",
    "segment.index.bytes",
    "segment.jitter.ms",
    "unclean.leader.election.enable",
)
PROFILES: Mapping[str, ClusterProfile] = {
    profile.name: profile
    for profile in (
        ClusterProfile(
            name="msk-express",
            title="Amazon MSK with Express brokers",
            source=f"{_AWS}/use-kafka-streams-express-brokers-msk-serverless.html",
            refused=frozenset({*_FILES, "min.insync.replicas", "segment.bytes", "segment.ms"}),
            replication_factor=3,
        ),
        ClusterProfile(
            name="msk-serverless",
            title="Amazon MSK Serverless",
            source=f"{_AWS}/serverless-config.html",
            settable=frozenset(
                {
                    "cleanup.policy",
                    "compression.type",
                    "max.message.bytes",
                    "message.timestamp.difference.max.ms",
                    "message.timestamp.type",
                    "retention.bytes",
                    "retention.ms",
                }
            ),
            limits={"max.message.bytes": (0, 8_388_608)},
            replication_factor=3,
        ),
        ClusterProfile(
            name="confluent-cloud",
            title="Confluent Cloud",
            source="https://docs.confluent.io/cloud/current/topics/manage.html",
            refused=frozenset({*_FILES, "compression.type", "min.cleanable.dirty.ratio"}),
            limits={"delete.retention.ms": (0, 60_566_400_000), "segment.bytes": (52_428_800, 1_073_741_824)},
            replication_factor=3,
        ),
        ClusterProfile(
            name="redpanda",
            title="Redpanda",
            source="https://docs.redpanda.com/current/reference/properties/topic-properties/",
            refused=frozenset({*_FILES, "min.insync.replicas"} - {"flush.ms"}),
            accepts_similar_names=True,
        ),
        ClusterProfile(
            name="diskless",
            title="a cluster with diskless topics (KIP-1150)",
            source="https://aiven.io/docs/products/kafka/diskless/concepts/limitations",
            forced={"diskless.enable": "false"},
        ),
        ClusterProfile(
            name="apache-kafka",
            title="Apache Kafka",
            source="https://kafka.apache.org/documentation/#topicconfigs",
        ),
    )
}
PLAIN = PROFILES["apache-kafka"]
"""No rules: a document declares it if the rules of the recognized kind of cluster do not hold."""


def recognize_profile(cluster_id: str, hosts: Sequence[str]) -> ClusterProfile | None:
    """Return the profile that the id of a cluster and its brokers' host names show, None if they show none.

    Express brokers have the names of other MSK brokers, and diskless topics are a feature of some clusters:
    both have to be declared.
    """
    if cluster_id.startswith("redpanda.") or any(host.endswith(".cloud.redpanda.com") for host in hosts):
        return PROFILES["redpanda"]
    if any(host.endswith(".confluent.cloud") for host in hosts):
        return PROFILES["confluent-cloud"]
    if any(".kafka-serverless." in host for host in hosts):
        return PROFILES["msk-serverless"]
    return None


def may_be_express(hosts: Sequence[str]) -> bool:
    """Return whether the brokers belong to MSK: their names do not show whether they are Express brokers."""
    return any(".kafka." in host and ".amazonaws.com" in host for host in hosts)
