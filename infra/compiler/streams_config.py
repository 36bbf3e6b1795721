"""The Kafka Streams config keys that compiler and planner read, as typed values."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

import attrs

from infra.compiler.version_differences import (
    EXPLICIT_NAMING,
    NO_OLD_GUARANTEES,
    NO_UPGRADE_FROM_2_3,
    PROCESS_FIX,
)
from infra.model.problems import Location, Problem, ProblemCode
from infra.model.topology import Application, Protocol
from infra.model.versions import DEFAULT_VERSION, KafkaStreamsVersion

T = TypeVar("T")

DAY_MS = 86_400_000
MINUTE_MS = 60_000
_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1

REUSE_SOURCE_TOPICS = "reuse.ktable.source.topics"
MERGE_REPARTITIONS = "merge.repartition.topics"
SINGLE_STORE_SELF_JOIN = "single.store.self.join"
LINEAR_HASH = "linear-hash"
"""A partitioner that moves keys to added partitions of the same processor (KIP-287): it is not static."""
INITIAL_PARTITIONS = "static.partitioner.initial.partitions"
OPTIMIZATIONS = frozenset({REUSE_SOURCE_TOPICS, MERGE_REPARTITIONS, SINGLE_STORE_SELF_JOIN})

_UPGRADES = (
    "0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6",
    "2.7", "2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2",
)  # fmt: skip
_LAST_WITH_OLD_CHANGES = (3, 4)
"""The last release whose `KTable#groupBy` sends old and new value in two records (KIP-904)."""

_WORD_BREAK = re.compile(r"\s*,\s*", re.ASCII)


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

    Defaults are those of Kafka Streams, KIP-698 and KIP-878. An invalid value is a problem, and its key has
    the default. A key that the application's version does not know has the default, too.
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
    linear_initial: int | None = None
    """`static.partitioner.initial.partitions` with `linear-hash`; None = not used, or not a number."""
    metadata_max_age_ms: int = 5 * MINUTE_MS
    max_poll_interval_ms: int = 5 * MINUTE_MS
    """`max.poll.interval.ms` of the main consumer (`StreamsConfig#getMainConsumerConfigs`)."""
    max_task_idle_ms: int = 0
    """`max.task.idle.ms`; -1: tasks do not wait."""
    stream_threads: int = 1
    uncaught_exception_handler: str | None = None
    """`uncaught.exception.handler` of `headwater run`: an answer, or a class."""
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    topic_prefix: str | None = None
    """`__internal.override.topic.prefix__`: replaces the application id in names of internal topics."""
    process_changes_key: bool = False
    """`__enable.process.processValue.fix__`: `process` and `processValues` count for the optimization."""
    upgrade_from: str | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def is_statically_partitioned(self) -> bool:
        """Whether a key keeps its partition when partitions are added."""
        return self.static_partitioner not in (None, LINEAR_HASH)

    @property
    def upgrades_changes(self) -> bool:
        """Whether instances before 3.5, which cannot read records of old and new value, may still run."""
        return self.upgrade_from is not None and _numbers(self.upgrade_from) <= _LAST_WITH_OLD_CHANGES

    @classmethod
    def of(cls, application: Application) -> "StreamsConfig":
        """Return the config of `application`; never raises, see `problems` for invalid values."""
        values = _Values(application.config, application.id, application.at)
        version = application.kafka_streams
        values.check_protocol(application.protocol)
        return cls(
            version=version,
            optimizations=values.read("topology.optimization", _optimizations, frozenset()),
            replication_factor=values.read("replication.factor", _replication_factor, -1),
            topic_overrides={
                key.removeprefix("topic."): value
                for key, value in application.config.items()
                if key.startswith("topic.") and key != "topic."
            },
            additional_retention_ms=values.read(
                "windowstore.changelog.additional.retention.ms", _whole(-_LONG_MAX, _LONG_MAX), DAY_MS
            ),
            explicit_naming=EXPLICIT_NAMING.is_in(version)
            and values.read("ensure.explicit.internal.resource.naming", _boolean, default=False),
            setup_mode=values.read("internal.topics.setup", _one_of(SetupMode), SetupMode.AUTOMATIC),
            autoscaling=values.read("partition.autoscaling.enabled", _boolean, default=False),
            autoscaling_timeout_ms=values.read(
                "partition.autoscaling.timeout.ms", _whole(0, _LONG_MAX), 15 * MINUTE_MS
            ),
            static_partitioner=values.read("static.partitioner.class", _text, None),
            linear_initial=_linear_initial(application.config),
            metadata_max_age_ms=values.read("metadata.max.age.ms", _whole(0, _LONG_MAX), 5 * MINUTE_MS),
            max_poll_interval_ms=values.read(
                values.of_main_consumer("max.poll.interval.ms"), _whole(1, _INT_MAX), 5 * MINUTE_MS
            ),
            max_task_idle_ms=values.read("max.task.idle.ms", _whole(-_LONG_MAX, _LONG_MAX), 0),
            stream_threads=values.read("num.stream.threads", _whole(-_INT_MAX, _INT_MAX), 1),
            uncaught_exception_handler=values.read("uncaught.exception.handler", _text, None),
            guarantee=values.read("processing.guarantee", _guarantee(version), Guarantee.AT_LEAST_ONCE),
            topic_prefix=values.read("__internal.override.topic.prefix__", _text, None),
            process_changes_key=PROCESS_FIX.is_in(version)
            and values.read("__enable.process.processValue.fix__", _boolean, default=False),
            upgrade_from=values.read("upgrade.from", _upgrade_from(version), None),
            problems=tuple(values.problems),
        )


class _BadValueError(Exception):
    """An invalid value; `str()` is the text of the allowed values."""


class _Values:
    """Parses single values and collects problems."""

    def __init__(self, config: Mapping[str, str], application: str, at: Location) -> None:
        self._config = config
        self._application = application
        self._at = at
        self.problems: list[Problem] = []

    def read(self, key: str, parse: Callable[[str], T], default: T) -> T:
        if key not in self._config:
            return default
        try:
            return parse(self._config[key])
        except _BadValueError as allowed:
            self.problems.append(self._invalid(key, self._config[key], str(allowed)))
            return default

    def of_main_consumer(self, key: str) -> str:
        """Return the key that sets `key` for the main consumer: that with the most specific prefix."""
        prefixed = (f"{prefix}{key}" for prefix in ("main.consumer.", "consumer."))
        return next((name for name in prefixed if name in self._config), key)

    def check_protocol(self, declared: Protocol) -> None:
        """Report a `group.protocol` in the config that differs from the declared protocol."""
        key = "group.protocol"
        configured = self.read(key, lambda value: _one_of(Protocol)(value.lower()), declared)
        if configured is not declared:
            self.problems.append(
                Problem(
                    code=ProblemCode.INVALID_CONFIG,
                    summary=f"{key} is not the protocol that the document declares.",
                    application=self._application,
                    expected=declared.value,
                    found=configured.value,
                    why="The two protocols decide partition counts differently.",
                    fix=f"Remove one of `application.protocol` and {key}, or make them agree.",
                    location=self._at,
                )
            )

    def _invalid(self, key: str, value: str, allowed: str) -> Problem:
        return Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary=f"{key} has a value that is not allowed.",
            application=self._application,
            expected=allowed,
            found=f'"{value}"',
            why="Kafka Streams throws a ConfigException: the application does not start.",
            fix=f"Set {key} to {allowed}, or remove it.",
            location=self._at,
        )


def _text(value: str) -> str:
    if not value.strip():
        raise _BadValueError("a text that is not empty")
    return value


def _boolean(value: str) -> bool:
    word = value.strip().lower()
    if word not in {"true", "false"}:
        raise _BadValueError("true or false")
    return word == "true"


def _linear_initial(config: Mapping[str, str]) -> int | None:
    text = config.get(INITIAL_PARTITIONS, "")
    is_used = config.get("static.partitioner.class") == LINEAR_HASH and text.isdecimal()
    return int(text) or None if is_used else None


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        bounds = f"a whole number from {least} to {most}"
        try:
            number = int(value.strip())
        except ValueError:
            raise _BadValueError(bounds) from None
        if not least <= number <= most:
            raise _BadValueError(bounds)
        return number

    return parse


def _replication_factor(value: str) -> int:
    try:
        number = int(value.strip())
    except ValueError:
        number = 0
    if number != -1 and not 1 <= number <= 2**15 - 1:
        raise _BadValueError("-1 (the broker's default) or a whole number from 1 to 32767")
    return number


Word = TypeVar("Word", bound=StrEnum)


def _one_of(words: type[Word]) -> Callable[[str], Word]:
    def parse(value: str) -> Word:
        try:
            return words(value.strip())
        except ValueError:
            raise _BadValueError(" or ".join(words)) from None

    return parse


def _guarantee(version: KafkaStreamsVersion) -> Callable[[str], Guarantee]:
    allowed = [
        each for each in Guarantee if each not in OLD_GUARANTEES or not NO_OLD_GUARANTEES.is_in(version)
    ]

    def parse(value: str) -> Guarantee:
        if value.strip() not in allowed:
            raise _BadValueError(" or ".join(allowed))
        return Guarantee(value.strip())

    return parse


def _upgrade_from(version: KafkaStreamsVersion) -> Callable[[str], str | None]:
    """Return the parser of `upgrade.from`: a release before `version`."""
    allowed = [release for release in _UPGRADES if _numbers(release) < (version.major, version.minor)]
    if NO_UPGRADE_FROM_2_3.is_in(version):
        allowed = allowed[allowed.index("2.4") :]

    def parse(value: str) -> str:
        if value not in allowed:
            raise _BadValueError(f"a release from {allowed[0]} to {allowed[-1]}, such as {allowed[-2]}")
        return value

    return parse


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _split(value: str) -> list[str]:
    """Split like `String#split` of Java, which drops empty strings at the end, but not an empty `value`."""
    words = _WORD_BREAK.split(value)
    while words and not words[-1] and value:
        words.pop()
    return words


def _optimizations(value: str) -> frozenset[str]:
    """`StreamsConfig#verifyTopologyOptimizationConfigs`."""
    words = _split(value)
    if words in (["none"], ["all"]):
        return OPTIMIZATIONS if words == ["all"] else frozenset()
    if not set(words) <= OPTIMIZATIONS:
        raise _BadValueError("none, all, or a comma-separated list of " + ", ".join(sorted(OPTIMIZATIONS)))
    return frozenset(words)
