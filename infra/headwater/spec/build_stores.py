"""Build stores, serdes, durations and configs from options of a document that fits the schema."""

from collections.abc import Mapping
from typing import Any

from headwater.compiler.configs.table import HEADWATER_CONFIGS
from headwater.compiler.java.config_values import trim_text
from headwater.model.durations import parse_duration
from headwater.model.stores import (
    Logging,
    Materialized,
    Serdes,
    StoreBuilder,
    StoreKind,
    StoreSupplier,
    StoreType,
)
from headwater.spec.scalars import config_text
from headwater.spec.topic_configs import broker_text

Options = Mapping[str, Any]
_TOPIC_PREFIX = "topic."


def read_config(options: Options | None) -> dict[str, str]:
    """Return an application's configs. The `topic.` ones have the form in which brokers return them.

    Configs declared as absent are omitted (`find_absent_configs`).
    """
    return {
        key: _normalize_config(key, config_text(value))
        for key, value in (options or {}).items()
        if value is not None
    }


def find_absent_configs(options: Options | None) -> frozenset[str]:
    """Return the names of the topic configs that an application declares as absent: `topic.NAME: null`."""
    return frozenset(
        key.removeprefix(_TOPIC_PREFIX) for key, value in (options or {}).items() if value is None
    )


def _normalize_config(key: str, text: str) -> str:
    if key.startswith(_TOPIC_PREFIX):
        return broker_text(key.removeprefix(_TOPIC_PREFIX), text)
    own = HEADWATER_CONFIGS.get(key)
    return text if own is None or own.form == "untrimmed" else trim_text(text)


def read_topic_config(options: Options | None) -> dict[str, str]:
    """Return configs of a topic in the form in which brokers return them."""
    return {key: broker_text(key, config_text(value)) for key, value in (options or {}).items()}


def read_duration(options: Options, key: str) -> int | None:
    """Return the milliseconds of a duration, None if the option is missing."""
    return parse_duration(options[key]) if key in options else None


def read_serdes(options: Options) -> Serdes | None:
    """Return the serdes of a call, None if it has none of its own."""
    return Serdes(**options["serdes"]) if "serdes" in options else None


def read_logging(options: Options) -> Logging | None:
    """Return logging from `false`, `true` or overrides."""
    match options.get("logging"):
        case None:
            return None
        case bool(enabled):
            return Logging(enabled=enabled)
        case overrides:
            return Logging(overrides=read_topic_config(overrides))


def build_materialized(options: Options) -> Materialized | None:
    """Return the `Materialized` of a call: a store name, or the options of a store; None if it is missing."""
    given = options.get("materialized")
    if given is None:
        return None
    if isinstance(given, str):
        return Materialized(store=given)
    return Materialized(
        store=given.get("store"),
        supplier=_build_supplier(given["supplier"]) if "supplier" in given else None,
        type=StoreType(given["type"]) if "type" in given else None,
        retention_ms=read_duration(given, "retention"),
        logging=read_logging(given),
        caching=given.get("caching"),
        serdes=read_serdes(given),
    )


def _build_supplier(
    options: Options, kind: StoreKind = StoreKind.KEY_VALUE, *, duplicates: bool = False
) -> StoreSupplier:
    """Return the store. `kind` and `duplicates` are defaults for what the document omits."""
    return StoreSupplier(
        name=options["name"],
        kind=StoreKind(options["kind"]) if "kind" in options else kind,
        type=StoreType(options.get("type", StoreType.ROCKS_DB)),
        retention_ms=read_duration(options, "retention"),
        window_size_ms=read_duration(options, "windowSize"),
        retain_duplicates=options.get("retainDuplicates", duplicates),
    )


def build_join_supplier(options: Options, key: str) -> StoreSupplier | None:
    """Return the supplier of a store of a stream-stream join, None if it is missing."""
    return _build_supplier(options[key], StoreKind.WINDOW, duplicates=True) if key in options else None


def build_store(options: Options) -> StoreBuilder:
    """Return a store that is added by `addStateStore`, with a changelog topic unless logging is off."""
    return StoreBuilder(
        supplier=_build_supplier(options),
        logging=read_logging(options) or Logging(),
        caching=options.get("caching"),
        serdes=read_serdes(options),
        shared=options.get("shared", False),
        keyed_by_record=options.get("keyed") == "record",
    )


def build_topic_store(store: str | Options) -> StoreBuilder:
    """Return a global or read-only store. A name alone is a key-value store without a changelog topic."""
    return build_store({"name": store, "logging": False} if isinstance(store, str) else store)


def named_stores(stores: list[Any]) -> tuple[str, ...]:
    """Return the names of stores that another step declares."""
    return tuple(store for store in stores if isinstance(store, str))


def inline_stores(stores: list[Any]) -> tuple[StoreBuilder, ...]:
    """Return the stores that the step declares itself."""
    return tuple(build_store(store) for store in stores if not isinstance(store, str))
