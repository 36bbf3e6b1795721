"""The settings of the engine from Kafka Streams' config keys."""

from collections.abc import Iterator, Mapping
from typing import Literal

import attrs

from headwater.compiler.configs.table import read_config
from headwater.compiler.streams_config import StreamsConfig
from headwater.compiler.version_differences import has_config
from headwater.model.broker_defaults import LARGEST_REQUEST
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import Application
from headwater.model.versions import DEFAULT_VERSION
from headwater_spark.engine.error_handlers import (
    DESERIALIZATION_HANDLER,
    PROCESSING_HANDLER,
    PRODUCTION_HANDLER,
)
from headwater_spark.engine.program.config_support import refused_configs
from headwater_spark.engine.program_interface import EngineSettings

_CACHE = ("statestore.cache.max.bytes", "cache.max.bytes.buffering")
_MAX_IDLE = "max.task.idle.ms"
_RECOVERY_LAG = "acceptable.recovery.lag"
_PURGE_INTERVAL = "repartition.purge.interval.ms"
DEAD_LETTERS = "errors.dead.letter.queue.topic.name"
_LARGEST_REQUEST = ("producer.max.request.size", "max.request.size")
"""The keys. If both are set, the first key wins."""
_EMIT = "__emit.interval.ms.kstreams.windowed.aggregation__"
_OUTER = "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__"
_GLOBAL_HANDLER = "processing.exception.handler.global.enabled"
_STORE_TYPE = "default.dsl.store"
_STORE_SUPPLIERS = "dsl.store.suppliers.class"
_IN_MEMORY_SUPPLIERS = "BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"

Answer = Literal["fail", "continue"]

_HANDLERS: Mapping[str, Mapping[str, Answer]] = {
    DESERIALIZATION_HANDLER: {
        "LogAndFailExceptionHandler": "fail",
        "LogAndContinueExceptionHandler": "continue",
    },
    PROCESSING_HANDLER: {
        "LogAndFailProcessingExceptionHandler": "fail",
        "LogAndContinueProcessingExceptionHandler": "continue",
    },
    PRODUCTION_HANDLER: {
        "DefaultProductionExceptionHandler": "fail",
        "AlwaysContinueProductionExceptionHandler": "continue",
    },
}
"""Config key → simple name of Kafka Streams' class → answer. `default.` before the key is an older form."""
CONTINUE_HANDLERS: Mapping[str, str] = {
    key: next(name for name, answer in answers.items() if answer == "continue")
    for key, answers in _HANDLERS.items()
}
"""Config key → the class that skips failed records."""

_WHY_HANDLER = "It determines how failed records are handled, so there is no default for an unknown value."
_WHY_UPDATES = "It determines which updates are written, so there is no default for an unknown value."
_WHY_IDLE = "It determines in which order the records of several topics are processed."


def engine_settings(config: Mapping[str, str]) -> EngineSettings:
    """Return the settings, defaults for invalid values: `setting_problems` or the compiler reports them."""
    cache = next((key for key in _CACHE if key in config), _CACHE[0])
    return EngineSettings(
        cache_max_bytes=_read_number(config, cache),
        stores_in_memory=_stores_in_memory(config),
        on_bad_input=_read_answer(config, DESERIALIZATION_HANDLER),
        on_processing_error=_read_answer(config, PROCESSING_HANDLER),
        on_bad_output=_read_answer(config, PRODUCTION_HANDLER),
        dead_letter_topic=config.get(DEAD_LETTERS) or None,
        largest_request=_largest_request(config),
        emit_interval_ms=max(0, _read_number(config, _EMIT)),
        outer_join_interval_ms=max(0, _read_number(config, _OUTER)),
    )


def _largest_request(config: Mapping[str, str]) -> int:
    """Return `max.request.size` of the producers; the default for values that the compiler reports."""
    text = next((config[key] for key in _LARGEST_REQUEST if key in config), "").strip()
    return int(text) if text.isdecimal() else LARGEST_REQUEST


def global_settings(settings: EngineSettings, application: Application) -> EngineSettings:
    """Return the settings of the global task: the processing exception handler applies only if enabled."""
    enabled = has_config(_GLOBAL_HANDLER, application.kafka_streams) and (
        application.config.get(_GLOBAL_HANDLER, "").strip().lower() == "true"
    )
    return settings if enabled else attrs.evolve(settings, on_processing_error="fail")


def without_cache(settings: EngineSettings) -> EngineSettings:
    """Return settings without record cache and without intervals of emission: each update is forwarded."""
    return attrs.evolve(settings, cache_max_bytes=0, emit_interval_ms=0, outer_join_interval_ms=0)


def max_task_idle_ms(config: Mapping[str, str]) -> int:
    """Return how long a task waits for the next record of an input partition that it has read to the end.

    0 (the default): it waits only for records that are in Kafka; -1: not even for these (KIP-695).
    """
    return max(-1, _read_number(config, _MAX_IDLE))


def acceptable_recovery_lag(config: Mapping[str, str]) -> int:
    """Return how many records may be left to copy when processors are added; the default is 10,000."""
    return _read_number(config, _RECOVERY_LAG)


def purge_interval_ms(config: Mapping[str, str]) -> int:
    """Return the time between two deletions of records in repartition topics; the default is 30 seconds."""
    return _read_number(config, _PURGE_INTERVAL)


def setting_problems(application: Application) -> Iterator[Problem]:
    """Yield a problem for each value that Kafka Streams accepts, but the runtime does not support."""
    config = application.config
    guarantee = StreamsConfig.from_application(application).guarantee
    yield from refused_configs(application, exactly_once=guarantee.is_exactly_once)
    for key in (_EMIT, _OUTER):
        if _read_number(config, key) < 0:
            yield refused_setting(application, key, "a whole number of at least 0", _WHY_UPDATES)
    if _read_number(config, _MAX_IDLE) < -1:
        yield refused_setting(application, _MAX_IDLE, "milliseconds, or -1", _WHY_IDLE)
    for key, answers in _HANDLERS.items():
        for spelled in (key, f"default.{key}"):
            if spelled in config and _simple_name(config[spelled]) not in answers:
                yield refused_setting(application, spelled, " or ".join(answers), _WHY_HANDLER)


def _stores_in_memory(config: Mapping[str, str]) -> bool:
    """Return the type of stores whose type the topology does not name (`TopologyConfig`)."""
    suppliers = config.get(_STORE_SUPPLIERS)
    if suppliers is not None:
        return _simple_name(suppliers) == _IN_MEMORY_SUPPLIERS
    return config.get(_STORE_TYPE, "").strip() == "in_memory"


def _read_answer(config: Mapping[str, str], key: str) -> Answer:
    given = config.get(key, config.get(f"default.{key}", ""))
    return _HANDLERS[key].get(_simple_name(given), "fail")


def _simple_name(class_name: str) -> str:
    return class_name.strip().rpartition(".")[2]


def _read_number(config: Mapping[str, str], key: str) -> int:
    """Return the value or the default, which are the same in all versions."""
    found = read_config(config, key, DEFAULT_VERSION)
    return found if isinstance(found, int) else 0


def refused_setting(application: Application, key: str, allowed: str, why: str, fix: str = "") -> Problem:
    """Return the problem of a value that the runtime does not support; without `fix`: set an allowed one."""
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"The runtime does not support the value of {key}.",
        application=application.id,
        expected=allowed,
        found=f'"{application.config[key]}"',
        why=why,
        fix=fix or f"Set {key} to {allowed}, or remove it.",
        location=application.locate_config(key),
    )
