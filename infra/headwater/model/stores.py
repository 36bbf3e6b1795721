"""State stores as users declare them: `Materialized`, store suppliers and store builders."""

from collections.abc import Mapping
from enum import Enum

import attrs


class StoreKind(Enum):
    """The kind of a store; it decides the changelog's config (facts 5.2)."""

    KEY_VALUE = "keyValue"
    TIMESTAMPED_KEY_VALUE = "timestampedKeyValue"
    VERSIONED_KEY_VALUE = "versionedKeyValue"
    WINDOW = "window"
    TIMESTAMPED_WINDOW = "timestampedWindow"
    SESSION = "session"


class StoreType(Enum):
    """`Materialized.withStoreType`; the changelog is the same for both."""

    ROCKS_DB = "rocksDB"
    IN_MEMORY = "in-memory"


@attrs.frozen
class Logging:
    """`withLoggingEnabled(overrides)` or, with `enabled=False`, `withLoggingDisabled()`."""

    enabled: bool = True
    overrides: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class StoreSupplier:
    """A store supplier, handed to `Materialized.as`, `StreamJoined.withThisStoreSupplier` or a builder.

    `retention_ms` is the supplier's own retention (window, session) or history retention (versioned).
    """

    name: str
    kind: StoreKind
    type: StoreType = StoreType.ROCKS_DB
    retention_ms: int | None = None
    window_size_ms: int | None = None
    retain_duplicates: bool = False


@attrs.frozen
class Materialized:
    """`Materialized` as passed to a call; even one without a name may use an index.

    A `supplier` has its own name, then `store` is None.
    """

    store: str | None = None
    supplier: StoreSupplier | None = None
    type: StoreType | None = None
    retention_ms: int | None = None
    logging: Logging | None = None
    caching: bool | None = None
    serdes: "Serdes | None" = None

    @property
    def store_name(self) -> str | None:
        """Return the user's name of the store, None if Kafka Streams generates one (`storeName()`)."""
        return self.supplier.name if self.supplier is not None else self.store


@attrs.frozen
class StoreBuilder:
    """`Stores.…StoreBuilder(supplier, …)`, added by `addStateStore` or by a processor supplier.

    Equal ones are one object of the program if they are `shared`.
    """

    supplier: StoreSupplier
    logging: Logging = Logging()
    caching: bool | None = None
    serdes: "Serdes | None" = None
    shared: bool = False
    keyed_by_record: bool = False
    """The user declares that the entries have the keys of records in the input topics (`keyed`)."""

    @property
    def name(self) -> str:
        return self.supplier.name


@attrs.frozen
class Serdes:
    """Key and value formats by name (`string`, `long`, `json`…). They do not affect internal topics."""

    key: str | None = None
    value: str | None = None
