"""Build the model's stores from options. The input fits the schema."""

from collections.abc import Mapping
from typing import Any

from headwater.compiler.configs.table import HEADWATER_CONFIGS
from headwater.compiler.java.config_values import trim_text
from headwater.model.stores import (
    Logging,
    Materialized,
    Serdes,
    StoreBuilder,
    StoreKind,
    StoreSupplier,
    StoreType,
)
from headwater.spec.scalars import config_text, milliseconds
from headwater.spec.topic_configs import broker_text

Options = Mapping[str, Any]


_TOPIC_PREFIX = "topic."


def config(options: Options | None) -> dict[str, str]:
    """Return an application's configs. The `topic.` ones have the form in which brokers return them.

    Configs declared as absent are omitted (`absent_topic_configs`).
    """
    return {
        key: _config_text(key, config_text(value))
        for key, value in (options or {}).items()
        if value is not None
    }


def absent_topic_configs(options: Options | None) -> frozenset[str]:
    """Return the names of the topic configs that an application declares as absent: `topic.NAME: null`."""
    return frozenset(
        key.removeprefix(_TOPIC_PREFIX) for key, value in (options or {}).items() if value is None
    )


def _config_text(key: str, text: str) -> str:
    if key.startswith(_TOPIC_PREFIX):
        return broker_text(key.removeprefix(_TOPIC_PREFIX), text)
    own = HEADWATER_CONFIGS.get(key)
    return text if own is None or own.form == "untrimmed" else trim_text(text)


def topic_config(options: Options | None) -> dict[str, str]:
    """Return configs of a topic in the form in which brokers return them."""
    return {key: broker_text(key, config_text(value)) for key, value in (options or {}).items()}


def duration(options: Options, key: str) -> int | None:
    return milliseconds(options[key]) if key in options else None


def serdes(options: Options) -> Serdes | None:
    return Serdes(**options["serdes"]) if "serdes" in options else None


def logging(options: Options) -> Logging | None:
    """Return logging from `false`, `true` or overrides."""
    match options.get("logging"):
        case None:
            return None
        case bool(enabled):
            return Logging(enabled=enabled)
        case overrides:
            return Logging(overrides=topic_config(overrides))


def materialized(options: Options) -> Materialized | None:
    given = options.get("materialized")
    if given is None:
        return None
    if isinstance(given, str):
        return Materialized(store=given)
    return Materialized(
        store=given.get("store"),
        supplier=supplier(given["supplier"]) if "supplier" in given else None,
        type=StoreType(given["type"]) if "type" in given else None,
        retention_ms=duration(given, "retention"),
        logging=logging(given),
        caching=given.get("caching"),
        serdes=serdes(given),
    )


def supplier(
    options: Options, kind: StoreKind = StoreKind.KEY_VALUE, *, duplicates: bool = False
) -> StoreSupplier:
    """Return the store. `kind` and `duplicates` are defaults for what the document omits."""
    return StoreSupplier(
        name=options["name"],
        kind=StoreKind(options["kind"]) if "kind" in options else kind,
        type=StoreType(options.get("type", StoreType.ROCKS_DB)),
        retention_ms=duration(options, "retention"),
        window_size_ms=duration(options, "windowSize"),
        retain_duplicates=options.get("retainDuplicates", duplicates),
    )


def join_supplier(options: Options, key: str) -> StoreSupplier | None:
    return supplier(options[key], StoreKind.WINDOW, duplicates=True) if key in options else None


def builder(options: Options) -> StoreBuilder:
    return StoreBuilder(
        supplier=supplier(options),
        logging=logging(options) or Logging(),
        caching=options.get("caching"),
        serdes=serdes(options),
        shared=options.get("shared", False),
        keyed_by_record=options.get("keyed") == "record",
    )


def filled_from_a_topic(store: str | Options) -> StoreBuilder:
    """Return a global or read-only store. A name alone is a key-value store without a changelog topic."""
    return builder({"name": store, "logging": False} if isinstance(store, str) else store)


def named(stores: list[Any]) -> tuple[str, ...]:
    return tuple(store for store in stores if isinstance(store, str))


def inline(stores: list[Any]) -> tuple[StoreBuilder, ...]:
    return tuple(builder(store) for store in stores if not isinstance(store, str))
