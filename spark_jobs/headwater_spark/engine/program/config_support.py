"""Which configs of Kafka Streams the runtime implements, and which it refuses as they would change results.

`SUPPORT` has every config of `StreamsConfig` in every supported version; a test compares it with the real
library. Of clients' configs, only configs that change results are here (`_OF_CLIENTS`).
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum

import attrs

from headwater.compiler.version_differences import has_config
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import Application

MAIN_CONSUMER_PREFIXES = ("main.consumer.", "consumer.", "")
"""The prefixes of the main consumer's configs, the most specific one first (`getMainConsumerConfigs`)."""
_ALL_CONSUMERS = ("main.consumer.", "consumer.", "global.consumer.", "restore.consumer.", "")
_PRODUCER_PREFIXES = ("producer.", "")


class Support(Enum):
    """What the runtime does with a config."""

    IMPLEMENTED = "implemented"
    NO_EFFECT = "no effect on results"
    """It tunes threads, clients, metrics, the disk or the placement of tasks of Kafka Streams."""
    REFUSED = "refused, unless it has the value for which results are the same"


@attrs.frozen
class Refusal:
    """When a config is refused: unless `allows` is true for its value."""

    allows: Callable[[str], bool]
    expected: str
    why: str


def _implemented_configs(*keys: str) -> dict[str, Support]:
    return dict.fromkeys(keys, Support.IMPLEMENTED)


def _without_effect(*keys: str) -> dict[str, Support]:
    return dict.fromkeys(keys, Support.NO_EFFECT)


def _is_class(*names: str) -> Callable[[str], bool]:
    """Return whether a value is one of these classes, with or without its package."""
    return lambda value: value.strip().rpartition(".")[2] in names


def _is_text(text: str) -> Callable[[str], bool]:
    return lambda value: value.strip().upper() == text.upper()


REFUSALS: Mapping[str, Refusal] = {
    "dsl.store.format": Refusal(
        _is_text("DEFAULT"), "DEFAULT", "With headers in stores, changelog records have other headers."
    ),
    "dsl.store.suppliers.class": Refusal(
        _is_class(
            "BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers",
            "BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers",
        ),
        "BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers or "
        "BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers",
        "The runtime cannot run stores that are Java classes.",
    ),
    "processor.wrapper.class": Refusal(
        _is_class("NoOpProcessorWrapper"),
        "NoOpProcessorWrapper",
        "A wrapper may change what processors do, and the runtime cannot run Java classes.",
    ),
    "default.timestamp.extractor": Refusal(
        _is_class("FailOnInvalidTimestamp"),
        "FailOnInvalidTimestamp",
        "Timestamps determine windows, joins and the order of records. Sources have `timestamp` for it.",
    ),
    "default.client.supplier": Refusal(
        _is_class("DefaultKafkaClientSupplier"),
        "DefaultKafkaClientSupplier",
        "Other clients may read and write other records, and the runtime cannot run Java classes.",
    ),
}
"""The configs that change results and are not implemented."""

SUPPORT: Mapping[str, Support] = {
    **_implemented_configs(
        "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__",
        "__emit.interval.ms.kstreams.windowed.aggregation__",
        "__internal.override.topic.prefix__",
        "acceptable.recovery.lag",
        "application.id",
        "cache.max.bytes.buffering",
        "default.deserialization.exception.handler",
        "default.dsl.store",
        "default.key.serde",
        "default.production.exception.handler",
        "default.value.serde",
        "deserialization.exception.handler",
        "ensure.explicit.internal.resource.naming",
        "errors.dead.letter.queue.topic.name",
        "group.protocol",
        "max.task.idle.ms",
        "num.stream.threads",
        "processing.exception.handler",
        "processing.exception.handler.global.enabled",
        "processing.guarantee",
        "production.exception.handler",
        "repartition.purge.interval.ms",
        "replication.factor",
        "state.dir",
        "statestore.cache.max.bytes",
        "task.timeout.ms",
        "topology.optimization",
        "upgrade.from",
        "windowstore.changelog.additional.retention.ms",
    ),
    **_without_effect(
        "__assignment.listener__",
        "__internal.consumer.wrapper__",
        "__iq.consistency.offset.vector.enabled__",
        "__processing.threads.enabled__",
        "__reference.container.instance__",
        "__state.updater.enabled__",
        "allow.os.group.write.access",
        "application.server",
        "auto.include.jmx.reporter",
        "bootstrap.servers",  # the connection of `headwater run` and of the stack
        "buffered.records.per.partition",
        "built.in.metrics.version",
        "client.id",
        "commit.interval.ms",  # a batch is a commit
        "config.providers",
        "connections.max.idle.ms",
        "default.interactive.query.isolation.level",
        "default.list.key.serde.inner",  # lists are no format, so their serdes are refused
        "default.list.key.serde.type",
        "default.list.value.serde.inner",
        "default.list.value.serde.type",
        "enable.metrics.push",
        "enable.transactional.statestores",  # a batch is a transaction of its local state already
        "internal.task.assignor.class",
        "log.summary.interval.ms",
        "max.warmup.replicas",
        "metadata.cluster.check.enable",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "num.standby.replicas",
        "poll.ms",
        "probing.rebalance.interval.ms",
        "rack.aware.assignment.non_overlap_cost",
        "rack.aware.assignment.strategy",
        "rack.aware.assignment.tags",
        "rack.aware.assignment.traffic_cost",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.ms",
        "rocksdb.config.setter",
        "security.protocol",
        "send.buffer.bytes",
        "state.cleanup.delay.ms",
        "state.cleanup.dir.max.age.ms",
        "statestore.uncommitted.max.bytes",
        "task.assignor.class",
        "topology.description.push.enabled",
        "window.size.ms",  # of deserializers outside of Kafka Streams
        "windowed.inner.class.serde",
    ),
    **dict.fromkeys(REFUSALS, Support.REFUSED),
}
"""Config → what the runtime does with it, for all supported versions of Kafka Streams."""

_NO_CLASS = Refusal(
    lambda value: not value.strip(),
    "no class",
    "It may change the records that are read or written, and the runtime cannot run Java classes.",
)
_OF_CLIENTS: Mapping[str, Refusal] = {
    **{f"{prefix}interceptor.classes": _NO_CLASS for prefix in (*_ALL_CONSUMERS, "producer.")},
    **{f"{prefix}partitioner.class": _NO_CLASS for prefix in _PRODUCER_PREFIXES},
    **{
        f"{prefix}partitioner.ignore.keys": Refusal(
            _is_text("false"), "false", "Records with the same key would be in different partitions."
        )
        for prefix in _PRODUCER_PREFIXES
    },
}
_READS_COMMITTED = Refusal(
    _is_text("read_uncommitted"),
    "read_uncommitted, or processing.guarantee exactly_once_v2",
    "With at least once, the runtime reads records of open and aborted transactions, as Kafka Streams does "
    "by default.",
)


def main_consumer_config(config: Mapping[str, str], key: str, default: str) -> str:
    """Return a config of the main consumer; the most specific prefix wins."""
    found = (config[f"{prefix}{key}"] for prefix in MAIN_CONSUMER_PREFIXES if f"{prefix}{key}" in config)
    return next(found, default)


def refused_configs(application: Application, *, exactly_once: bool) -> Iterator[Problem]:
    """Yield a problem for each config that changes results and is not implemented.

    A config that the application's version does not have is ignored, as in Kafka Streams.
    """
    refusals = {**REFUSALS, **_OF_CLIENTS}
    if not exactly_once:
        refusals |= {f"{prefix}isolation.level": _READS_COMMITTED for prefix in MAIN_CONSUMER_PREFIXES}
    for key, value in application.config.items():
        refusal = refusals.get(key)
        if refusal is None or refusal.allows(value):
            continue
        if key in SUPPORT and not has_config(key, application.kafka_streams):
            continue
        yield Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary=f"The runtime does not support the value of {key}.",
            application=application.id,
            expected=refusal.expected,
            found=f'"{value}"',
            why=refusal.why,
            fix=f"Remove {key}, or run the application with Kafka Streams.",
            location=application.at,
        )
