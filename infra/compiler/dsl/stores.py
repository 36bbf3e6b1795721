"""Stores as the compiler carries them: their changelog, and which of them are the same object."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from infra.compiler.dsl.formats import size_of, with_serdes
from infra.compiler.dsl.problems import ARGUMENT, topology_error
from infra.model.behaviors import RecordFormat, StoreSettings
from infra.model.nodes import ChangelogKind
from infra.model.problems import Location, Problem
from infra.model.stores import Logging, Materialized, StoreBuilder, StoreKind, StoreSupplier, StoreType
from infra.model.windows import (
    JoinWindow,
    SessionWindow,
    SlidingWindow,
    UnlimitedWindow,
    Window,
)

LONGEST_MS = 2**63 - 1
_NOTHING: Mapping[str, str] = MappingProxyType({})

KEY_VALUE_KINDS = frozenset(
    {StoreKind.KEY_VALUE, StoreKind.TIMESTAMPED_KEY_VALUE, StoreKind.VERSIONED_KEY_VALUE}
)
WINDOW_KINDS = frozenset({StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW})
SESSION_KINDS = frozenset({StoreKind.SESSION})


@attrs.frozen(eq=False)
class Store:
    """One store factory. Two of one name are an error unless their `same_as` are equal (`isCompatibleWith`).

    `base_ms` is the retention of a window or session store, the history retention of a versioned one.
    `from_builder` = made from a user's builder: adding it again makes Kafka Streams forget the processors
    connected before.
    """

    name: str
    kind: ChangelogKind
    logged: bool = True
    overrides: Mapping[str, str] = _NOTHING
    base_ms: int | None = None
    same_as: object = attrs.field(factory=object)
    from_builder: bool = False
    keeps: StoreSettings | None = None


@attrs.define(eq=False)
class LazyStore:
    """A store that exists only if `needed`: a join, a grouping or a user's name says so (facts 2.3)."""

    store: Store
    needed: bool = False


def is_versioned(materialized: Materialized | None) -> bool:
    """Whether the store is given by a supplier of versioned stores."""
    supplier = materialized.supplier if materialized is not None else None
    return supplier is not None and supplier.kind is StoreKind.VERSIONED_KEY_VALUE


def key_value_store(name: str, materialized: Materialized | None, record: RecordFormat) -> Store:
    """`KeyValueStoreMaterializer`: versioned if the supplier is."""
    supplier = materialized.supplier if materialized is not None else None
    logging = _logging(materialized)
    caching, in_memory = _caching(materialized), _in_memory(materialized)
    if supplier is not None and is_versioned(materialized):
        history = supplier.retention_ms or 0
        keeps = StoreSettings("versionedKeyValue", record, history, in_memory=in_memory)
        return Store(
            name, ChangelogKind.VERSIONED, logging.enabled, _overrides(logging), history, keeps=keeps
        )
    keeps = StoreSettings(
        "timestampedKeyValue",
        record,
        caching=caching,
        in_memory=in_memory,
        without_timestamps=_forgets_time(materialized, StoreKind.KEY_VALUE),
    )
    return Store(name, ChangelogKind.KEY_VALUE, logging.enabled, _overrides(logging), keeps=keeps)


def _forgets_time(materialized: Materialized | None, plain: StoreKind) -> bool:
    """`KeyValueToTimestampedKeyValueByteStoreAdapter` and its kin; stores in memory keep what they get."""
    supplier = materialized.supplier if materialized is not None else None
    return supplier is not None and supplier.kind is plain and _is_supplied_on_disk(materialized)


def _is_supplied_on_disk(materialized: Materialized | None) -> bool:
    return materialized is not None and materialized.supplier is not None and not _in_memory(materialized)


def windowed_store(
    name: str, materialized: Materialized | None, window: Window, retention_ms: int, record: RecordFormat
) -> Store:
    """`WindowStoreMaterializer` and its kin: a supplier's own retention counts for the store alone."""
    logging = _logging(materialized)
    supplier = materialized.supplier if materialized is not None else None
    kept_ms = supplier.retention_ms if supplier is not None else None
    is_session = isinstance(window, SessionWindow)
    keeps = StoreSettings(
        "session" if is_session else "timestampedWindow",
        record,
        retention_ms if kept_ms is None else kept_ms,
        size_of(window),
        caching=_caching(materialized),
        in_memory=_in_memory(materialized),
        without_timestamps=_forgets_time(materialized, StoreKind.WINDOW),
        ordered_by_key=not is_session and _is_supplied_on_disk(materialized),
    )
    return Store(
        name, ChangelogKind.WINDOWED, logging.enabled, _overrides(logging), retention_ms, keeps=keeps
    )


def join_store(
    name: str, window: JoinWindow, logging: Logging | None, same_as: object, record: RecordFormat
) -> Store:
    """`StreamJoinedStoreFactory`: keeps duplicates, and overwrites a cleanup policy that the user gives."""
    logging = logging or Logging()
    overrides = {key: value for key, value in _overrides(logging).items() if key != "cleanup.policy"}
    return Store(
        name,
        ChangelogKind.WINDOWED_DUPLICATES,
        logging.enabled,
        overrides,
        join_retention_ms(window),
        same_as,
        keeps=_keeps_join(window, record),
    )


def _keeps_join(window: JoinWindow, record: RecordFormat, *, in_memory: bool = False) -> StoreSettings:
    size = window.before_ms + window.after_ms
    return StoreSettings(
        "window", record, join_retention_ms(window), size, retain_duplicates=True, in_memory=in_memory
    )


def shared_join_store(name: str, logging: Logging | None, left: RecordFormat, right: RecordFormat) -> Store:
    """`OuterStreamJoinStoreFactory`: the list store of records that wait for a partner."""
    logging = logging or Logging()
    keeps = StoreSettings("list", left, right=right)
    return Store(name, ChangelogKind.KEY_VALUE, logging.enabled, _overrides(logging), keeps=keeps)


def supplied_join_store(supplier: StoreSupplier, window: JoinWindow, record: RecordFormat) -> Store:
    """A join store given by a supplier: always logged, never with overrides."""
    in_memory = supplier.type is StoreType.IN_MEMORY
    return Store(
        supplier.name,
        ChangelogKind.WINDOWED_DUPLICATES,
        base_ms=supplier.retention_ms,
        keeps=_keeps_join(window, record, in_memory=in_memory),
    )


def built_store(builder: StoreBuilder) -> Store:
    """A user's builder. Those that say the same are the same object: a document has no other identity."""
    supplier = builder.supplier
    return Store(
        supplier.name,
        _changelog_kind(supplier),
        builder.logging.enabled,
        _overrides(builder.logging),
        supplier.retention_ms if supplier.kind not in _UNTIMED else None,
        builder,
        from_builder=True,
        keeps=_keeps_built(builder),
    )


def _keeps_built(builder: StoreBuilder) -> StoreSettings:
    supplier = builder.supplier
    return StoreSettings(
        supplier.kind.value,
        with_serdes(RecordFormat(), builder.serdes),
        supplier.retention_ms,
        supplier.window_size_ms,
        retain_duplicates=supplier.retain_duplicates,
        caching=builder.caching,
        in_memory=supplier.type is StoreType.IN_MEMORY,
    )


def supplier_problems(supplier: StoreSupplier, at: Location | None) -> Iterator[Problem]:
    """The checks of the factory methods of `Stores`."""
    retention, size = supplier.retention_ms, supplier.window_size_ms
    if retention is not None and retention < 0:
        yield _out_of_range(supplier, "retention", "0 ms or more", f"{retention} ms", at)
    if supplier.kind in WINDOW_KINDS and retention is not None and size is not None:
        if size < 0:
            yield _out_of_range(supplier, "windowSize", "0 ms or more", f"{size} ms", at)
        elif size > retention:
            yield _out_of_range(
                supplier, "windowSize", f"at most the retention, {retention} ms", f"{size} ms", at
            )


def _out_of_range(
    supplier: StoreSupplier, what: str, expected: str, found: str, at: Location | None
) -> Problem:
    return topology_error(
        f"The `{what}` of store {supplier.name} is out of range.",
        throws=ARGUMENT,
        node=supplier.name,
        expected=f"{what} {expected}",
        found=found,
        at=at,
        fix=f"Set `{what}` to {expected}.",
    )


_UNTIMED = frozenset({StoreKind.KEY_VALUE, StoreKind.TIMESTAMPED_KEY_VALUE})


def _changelog_kind(supplier: StoreSupplier) -> ChangelogKind:
    if supplier.kind in _UNTIMED:
        return ChangelogKind.KEY_VALUE
    if supplier.kind is StoreKind.VERSIONED_KEY_VALUE:
        return ChangelogKind.VERSIONED
    # only `WindowStoreBuilder` sets cleanup.policy=delete for duplicates, its timestamped sibling does not
    if supplier.kind is StoreKind.WINDOW and supplier.retain_duplicates:
        return ChangelogKind.WINDOWED_DUPLICATES
    return ChangelogKind.WINDOWED


def window_span_ms(window: Window) -> int:
    """The shortest retention a window's store may have, and the one it has by default."""
    if isinstance(window, UnlimitedWindow):
        return LONGEST_MS
    if isinstance(window, SlidingWindow):
        return 2 * window.difference_ms + window.grace_ms
    if isinstance(window, SessionWindow):
        return window.gap_ms + window.grace_ms
    return window.size_ms + window.grace_ms


def close_grace_ms(window: Window) -> int:
    """What `suppress(untilWindowCloses)` waits beyond the window's end."""
    if isinstance(window, UnlimitedWindow):
        return 0
    if isinstance(window, SessionWindow):
        return window.gap_ms + window.grace_ms
    return window.grace_ms


def join_retention_ms(window: JoinWindow) -> int:
    return window.before_ms + window.after_ms + window.grace_ms


def _logging(materialized: Materialized | None) -> Logging:
    return (materialized.logging if materialized is not None else None) or Logging()


def _caching(materialized: Materialized | None) -> bool | None:
    return materialized.caching if materialized is not None else None


def _in_memory(materialized: Materialized | None) -> bool:
    if materialized is None:
        return False
    of = materialized.supplier.type if materialized.supplier is not None else materialized.type
    return of is StoreType.IN_MEMORY


def _overrides(logging: Logging) -> Mapping[str, str]:
    return logging.overrides if logging.enabled else _NOTHING
