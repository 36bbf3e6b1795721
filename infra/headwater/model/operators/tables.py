"""Calls that convert between streams and tables, and `KTable#transformValues`."""

import attrs

from headwater.model.stores import Materialized, Serdes, StoreBuilder


@attrs.frozen
class ToTable:
    """`KStream#toTable(Named, Materialized)`."""

    name: str | None = None
    materialized: Materialized | None = None
    serdes: Serdes | None = None


@attrs.frozen
class ToStream:
    """`KTable#toStream(Named)`; `selects_key` when a key mapper is passed (`key` is its expression)."""

    name: str | None = None
    selects_key: bool = False
    key: str | None = None


@attrs.frozen
class TransformValues:
    """`KTable#transformValues(supplier, Materialized, Named, stores…)`."""

    name: str | None = None
    materialized: Materialized | None = None
    stores: tuple[str, ...] = ()
    connected: tuple[StoreBuilder, ...] = ()
    processor_class: str | None = None
    serdes: Serdes | None = None
