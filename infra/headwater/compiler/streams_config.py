"""The Kafka Streams config keys that compiler and planner read, as typed values."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

import attrs

from headwater.compiler.configs.check import config_problems
from headwater.compiler.configs.table import read_config
from headwater.compiler.configs.values import OPTIMIZATIONS as ALL_OPTIMIZATIONS
from headwater.compiler.configs.values import Value, read_optimizations
from headwater.compiler.version_differences import PROCESS_FIX
from headwater.model.broker_defaults import LARGEST_REQUEST
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import Application
from headwater.model.versions import DEFAULT_VERSION, KafkaStreamsVersion

DAY_MS = 86_400_000
MINUTE_MS = 60_000
LONGEST_MS = 2**63 - 1
"""The largest `long` of Java: a window or a retention without an end."""

REUSE_SOURCE_TOPICS, MERGE_REPARTITIONS, SINGLE_STORE_SELF_JOIN = ALL_OPTIMIZATIONS
OPTIMIZATIONS = frozenset(ALL_OPTIMIZATIONS)
LINEAR_HASH = "linear-hash"
"""A partitioner that moves keys to added partitions of the same processor (KIP-287): it is not static."""
LIBRARY_PARTITIONER = "io.headwater.streams.partitioning.StaticPartitioner"
"""The `partitioner.class` of producers on the JVM; its configs begin with `static.partitioner.`."""
LIBRARY_SUPPLIER = "io.headwater.streams.HeadwaterClientSupplier"
"""The `default.client.supplier` of applications on the JVM."""
INITIAL_PARTITIONS = "static.partitioner.initial.partitions"

_GROUP_PROTOCOL = "group.protocol"
_MOST_REPLICAS = 2**15 - 1
_LAST_WITH_OLD_CHANGES = (3, 4)
"""The last release whose `KTable#groupBy` sends old and new value in two records (KIP-904)."""


class SetupMode(StrEnum):
    """`internal.topics.setup` (KIP-698): who creates internal topics."""

    AUTOMATIC = "automatic"
    MANUAL = "manual"


class Guarantee(StrEnum):
    """`processing.guarantee`."""

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE_V2 = "exactly_once_v2"
    EXACTLY_ONCE = "exactly_once"
    """As `EXACTLY_ONCE_BETA`, only before Kafka Streams 4.0."""
    EXACTLY_ONCE_BETA = "exactly_once_beta"

    @property
    def is_exactly_once(self) -> bool:
        return self is not Guarantee.AT_LEAST_ONCE


OLD_GUARANTEES = (Guarantee.EXACTLY_ONCE, Guarantee.EXACTLY_ONCE_BETA)


@attrs.frozen
class StreamsConfig:
    """The config of an application. Durations are milliseconds.

    Kafka Streams, KIP-698 and KIP-878 define the defaults. A key with an invalid value has the default, and
    so has a key that the application's version does not know.
    """

    version: KafkaStreamsVersion = DEFAULT_VERSION

    optimizations: frozenset[str] = frozenset()
    """The enabled ones of `OPTIMIZATIONS` (`topology.optimization`)."""
    replication_factor: int = -1
    """-1 = the broker's default."""
    topic_overrides: Mapping[str, str] = attrs.field(factory=dict)
    """`topic.<config>` without the prefix: set on every internal topic."""
    additional_retention_ms: int = DAY_MS
    """`windowstore.changelog.additional.retention.ms`."""
    explicit_naming: bool = False
    """`ensure.explicit.internal.resource.naming`."""
    setup_mode: SetupMode = SetupMode.AUTOMATIC
    autoscaling: bool = False
    """`partition.autoscaling.enabled` (KIP-878)."""
    autoscaling_timeout_ms: int = 15 * MINUTE_MS
    static_partitioner: str | None = None
    """`static.partitioner.class`."""
    library_function: str | None = None
    """The function of the library's partitioner, if the producers of the application on the JVM use that."""
    without_partitioner: bool = False
    """An application on the JVM with the library, whose producers have no `partitioner.class`."""
    linear_initial: int | None = None
    """`static.partitioner.initial.partitions` with `linear-hash`; None = not used, or not a number."""
    metadata_max_age_ms: int = 5 * MINUTE_MS
    max_poll_interval_ms: int = 5 * MINUTE_MS
    """`max.poll.interval.ms` of the main consumer (`StreamsConfig#getMainConsumerConfigs`)."""
    largest_request: int = LARGEST_REQUEST
    """`max.request.size` of the producers (`StreamsConfig#getProducerConfigs`)."""
    max_task_idle_ms: int = 0
    """`max.task.idle.ms`; -1: tasks do not wait."""
    task_timeout_ms: int = 5 * MINUTE_MS
    """`task.timeout.ms` (KIP-572)."""
    stream_threads: int = 1
    uncaught_exception_handler: str | None = None
    """`uncaught.exception.handler` of `headwater run`: an answer, or a class."""
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    topic_prefix: str | None = None
    """`__internal.override.topic.prefix__`: replaces the application id in names of internal topics."""
    process_changes_key: bool = False
    """`__enable.process.processValue.fix__`: `process` and `processValues` count for the optimization."""
    upgrade_from: str | None = None

    @property
    def is_statically_partitioned(self) -> bool:
        """Whether a key keeps its partition when partitions are added.

        The library's function counts more than `static.partitioner.class`, which the JVM does not read.
        """
        if self.without_partitioner:
            return False
        return (self.library_function or self.static_partitioner) not in (None, LINEAR_HASH)

    @property
    def upgrades_changes(self) -> bool:
        """Whether instances before 3.5, which cannot read records of old and new value, may still run."""
        if self.upgrade_from is None:
            return False
        return tuple(map(int, self.upgrade_from.split("."))) <= _LAST_WITH_OLD_CHANGES

    @classmethod
    def from_application(cls, application: Application) -> "StreamsConfig":
        """Return the config of `application`; never raises, see `config_problems` for invalid values."""
        return _read_configs(application.kafka_streams, tuple(application.config.items()))


def has_library(config: Mapping[str, str]) -> bool:
    """Return whether the application loads the library for Kafka Streams applications."""
    return config.get("default.client.supplier") == LIBRARY_SUPPLIER


def streams_config_problems(application: Application) -> tuple[Problem, ...]:
    """Return a problem for each config that is refused, and for a protocol that is not the declared one."""
    return (*config_problems(application), *_other_protocol(application))


@lru_cache(maxsize=1024)
def _read_configs(version: KafkaStreamsVersion, configs: tuple[tuple[str, str], ...]) -> StreamsConfig:
    """Return the config; kept, because plans and the checks of agents need it again for each question."""
    config = dict(configs)
    values = _Values(config, version)
    return StreamsConfig(
        version=version,
        optimizations=read_optimizations(values.text("topology.optimization") or "none") or frozenset(),
        replication_factor=values.replication_factor(),
        topic_overrides={
            key.removeprefix("topic."): value
            for key, value in config.items()
            if key.startswith("topic.") and key != "topic."
        },
        additional_retention_ms=values.whole("windowstore.changelog.additional.retention.ms", DAY_MS),
        explicit_naming=values.flag("ensure.explicit.internal.resource.naming"),
        setup_mode=SetupMode(values.text("internal.topics.setup") or SetupMode.AUTOMATIC),
        autoscaling=values.flag("partition.autoscaling.enabled"),
        autoscaling_timeout_ms=values.whole("partition.autoscaling.timeout.ms", 15 * MINUTE_MS),
        static_partitioner=values.text("static.partitioner.class"),
        library_function=values.library_function(),
        without_partitioner=values.without_partitioner(),
        linear_initial=values.linear_initial(),
        metadata_max_age_ms=values.whole("metadata.max.age.ms", 5 * MINUTE_MS),
        max_poll_interval_ms=values.whole_of_client(
            "max.poll.interval.ms", ("main.consumer.", "consumer."), 5 * MINUTE_MS
        ),
        largest_request=values.whole_of_client("max.request.size", ("producer.",), LARGEST_REQUEST),
        max_task_idle_ms=values.whole("max.task.idle.ms", 0),
        task_timeout_ms=values.whole("task.timeout.ms", 5 * MINUTE_MS),
        stream_threads=values.whole("num.stream.threads", 1),
        uncaught_exception_handler=values.text("uncaught.exception.handler"),
        guarantee=Guarantee(values.text("processing.guarantee") or Guarantee.AT_LEAST_ONCE),
        topic_prefix=values.text("__internal.override.topic.prefix__"),
        process_changes_key=PROCESS_FIX.is_in(version) and values.flag("__enable.process.processValue.fix__"),
        upgrade_from=values.text("upgrade.from"),
    )


class _Values:
    """Reads single values: the default for a value that is not set or invalid."""

    def __init__(self, config: Mapping[str, str], version: KafkaStreamsVersion) -> None:
        self._config = config
        self._version = version

    def whole(self, key: str, default: int) -> int:
        found = self._read(key)
        return found if isinstance(found, int) else default

    def flag(self, key: str) -> bool:
        return self._read(key) is True

    def text(self, key: str) -> str | None:
        found = self._read(key)
        return found if isinstance(found, str) else None

    def _read(self, key: str) -> Value | None:
        return read_config(self._config, key, self._version) if key in self._config else None

    def replication_factor(self) -> int:
        found = self.whole("replication.factor", -1)
        return found if 1 <= found <= _MOST_REPLICAS else -1

    def whole_of_client(self, key: str, prefixes: tuple[str, ...], default: int) -> int:
        """Return the value with the first of these prefixes, most specific first, or without one."""
        given = [name for prefix in (*prefixes, "") if (name := prefix + key) in self._config]
        return self.whole(given[0], default) if given else default

    def library_function(self) -> str | None:
        """Return the function, with the most specific prefix (`StreamsConfig#getProducerConfigs`)."""
        if self._of_producer("partitioner.class") != LIBRARY_PARTITIONER:
            return None
        return self._of_producer("static.partitioner.class")

    def without_partitioner(self) -> bool:
        return has_library(self._config) and self._of_producer("partitioner.class") is None

    def _of_producer(self, key: str) -> str | None:
        return self._config.get(f"producer.{key}", self._config.get(key))

    def linear_initial(self) -> int | None:
        is_used = self.text("static.partitioner.class") == LINEAR_HASH and INITIAL_PARTITIONS in self._config
        return self.whole(INITIAL_PARTITIONS, 0) or None if is_used else None


def _other_protocol(application: Application) -> Iterator[Problem]:
    """Report a `group.protocol` in the config that differs from the declared protocol."""
    found = read_config(application.config, _GROUP_PROTOCOL, application.kafka_streams)
    is_given = _GROUP_PROTOCOL in application.config and isinstance(found, str)
    if is_given and str(found).lower() != application.protocol:
        yield Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary=f"{_GROUP_PROTOCOL} is not the protocol that the document declares.",
            application=application.id,
            expected=application.protocol.value,
            found=str(found).lower(),
            why="The two protocols decide partition counts differently.",
            fix=f"Remove one of `application.protocol` and {_GROUP_PROTOCOL}, or make them agree.",
            location=application.locate_config(_GROUP_PROTOCOL),
        )
