"""Stores during a build: their changelogs, and which of them are the same object."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from headwater.compiler.dsl.formats import size_of, with_serdes
from headwater.compiler.dsl.messages import ARGUMENT, lint_problem, topology_error
from headwater.compiler.streams_config import LONGEST_MS
from headwater.compiler.version_differences import JOIN_STORES_WITH_HEADERS, LOGGED_HEADERS
from headwater.model.durations import duration_text
from headwater.model.formats import RecordFormat, StoreSettings
from headwater.model.nodes import ChangelogKind
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.stores import Logging, Materialized, StoreBuilder, StoreKind, StoreSupplier, StoreType
from headwater.model.versions import KafkaStreamsVersion
from headwater.model.windows import JoinWindow, SessionWindow, SlidingWindow, UnlimitedWindow, Window

_NOTHING: Mapping[str, str] = MappingProxyType({})

KEY_VALUE_KINDS = frozenset(
    {StoreKind.KEY_VALUE, StoreKind.TIMESTAMPED_KEY_VALUE, StoreKind.VERSIONED_KEY_VALUE}
)
WINDOW_KINDS = frozenset({StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW})
SESSION_KINDS = frozenset({StoreKind.SESSION})


@attrs.frozen(eq=False)
class Store:
    """A `StoreFactory`. Two with one name are an error unless `same_as` is equal (`isCompatibleWith`).

    `base_ms` is the retention of a window or session store or the history retention of a versioned store, in
    milliseconds. `from_builder`: created from a user's `StoreBuilder`; if it is added again, Kafka Streams
    drops the processors that were connected before.
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
    """A store that exists only if `needed`: for a join, a grouping or with a user's name (facts 2.3)."""

    store: Store
    needed: bool = False


def is_versioned(materialized: Materialized | None) -> bool:
    """Return whether `materialized` has a supplier of versioned stores."""
    supplier = materialized.supplier if materialized is not None else None
    return supplier is not None and supplier.kind is StoreKind.VERSIONED_KEY_VALUE


def key_value_store(name: str, materialized: Materialized | None, record: RecordFormat) -> Store:
    """Return a key-value store, versioned if the supplier is (`KeyValueStoreMaterializer`)."""
    supplier = materialized.supplier if materialized is not None else None
    logging = _logging_of(materialized)
    if supplier is not None and is_versioned(materialized):
        history = supplier.retention_ms or 0
        keeps = StoreSettings("versionedKeyValue", record, history, in_memory=False)
        return Store(
            name, ChangelogKind.VERSIONED, logging.enabled, _overrides_of(logging), history, keeps=keeps
        )
    keeps = StoreSettings(
        "timestampedKeyValue",
        record,
        caching=_has_cache(materialized),
        in_memory=_in_memory(materialized),
        without_timestamps=_drops_timestamps(materialized, StoreKind.KEY_VALUE),
    )
    return Store(name, ChangelogKind.KEY_VALUE, logging.enabled, _overrides_of(logging), keeps=keeps)


def _drops_timestamps(materialized: Materialized | None, plain: StoreKind) -> bool:
    """Return whether the store drops timestamps (`KeyValueToTimestampedKeyValueByteStoreAdapter` and others).

    Stores in memory keep them.
    """
    supplier = materialized.supplier if materialized is not None else None
    return supplier is not None and supplier.kind is plain and _is_supplied_on_disk(materialized)


def _is_supplied_on_disk(materialized: Materialized | None) -> bool:
    supplier = materialized.supplier if materialized is not None else None
    return supplier is not None and supplier.type is StoreType.ROCKS_DB


def windowed_store(
    name: str,
    materialized: Materialized | None,
    window: Window,
    retention_ms: int,
    record: RecordFormat,
    *,
    emit_on_close: bool = False,
) -> Store:
    """Return a window or session store (`WindowStoreMaterializer`, `SessionStoreMaterializer` and others).

    The retention of a supplier applies to the store, not to its changelog. Sliding windows and sessions that
    are emitted on close have no cache.
    """
    logging = _logging_of(materialized)
    supplier = materialized.supplier if materialized is not None else None
    supplied_ms = supplier.retention_ms if supplier is not None else None
    is_session = isinstance(window, SessionWindow)
    keeps = StoreSettings(
        "session" if is_session else "timestampedWindow",
        record,
        retention_ms if supplied_ms is None else supplied_ms,
        LONGEST_MS if isinstance(window, UnlimitedWindow) else size_of(window),
        caching=_has_cache(materialized)
        and not (emit_on_close and isinstance(window, SlidingWindow | SessionWindow)),
        in_memory=_in_memory(materialized),
        without_timestamps=_drops_timestamps(materialized, StoreKind.WINDOW),
        ordered_by_key=not is_session and _is_supplied_on_disk(materialized),
    )
    return Store(
        name, ChangelogKind.WINDOWED, logging.enabled, _overrides_of(logging), retention_ms, keeps=keeps
    )


def join_store(
    name: str, window: JoinWindow, logging: Logging | None, same_as: object, settings: StoreSettings
) -> Store:
    """Return a join's window store (`StreamJoinedStoreFactory`).

    It retains duplicates, and overrides a cleanup policy of the user.
    """
    logging = logging or Logging()
    overrides = {key: value for key, value in _overrides_of(logging).items() if key != "cleanup.policy"}
    return Store(
        name,
        ChangelogKind.WINDOWED_DUPLICATES,
        logging.enabled,
        overrides,
        join_retention_ms(window),
        same_as,
        keeps=settings,
    )


def join_settings(
    window: JoinWindow, record: RecordFormat, version: KafkaStreamsVersion, *, in_memory: bool | None = None
) -> StoreSettings:
    """Return how the runtime opens a join's window store: without a cache, as it retains duplicates."""
    return StoreSettings(
        "window",
        record,
        join_retention_ms(window),
        window.before_ms + window.after_ms,
        retain_duplicates=True,
        in_memory=in_memory,
        logs_headers=LOGGED_HEADERS.is_in(version),
    )


def shared_join_store(name: str, logging: Logging | None, left: RecordFormat, right: RecordFormat) -> Store:
    """Return the shared store of a left or outer join (`OuterStreamJoinStoreFactory`)."""
    logging = logging or Logging()
    keeps = StoreSettings("list", left, right=right)
    return Store(name, ChangelogKind.KEY_VALUE, logging.enabled, _overrides_of(logging), keeps=keeps)


def supplied_join_store(
    supplier: StoreSupplier, window: JoinWindow, record: RecordFormat, version: KafkaStreamsVersion
) -> Store:
    """Return a join's store from a supplier: always logged, without overrides."""
    in_memory = supplier.type is StoreType.IN_MEMORY
    is_compacted = JOIN_STORES_WITH_HEADERS.is_in(version)
    return Store(
        supplier.name,
        ChangelogKind.WINDOWED if is_compacted else ChangelogKind.WINDOWED_DUPLICATES,
        base_ms=supplier.retention_ms,
        keeps=join_settings(window, record, version, in_memory=in_memory),
    )


def built_store(builder: StoreBuilder) -> Store:
    """Return the store of a user's builder; equal shared builders of a document are the same object."""
    supplier = builder.supplier
    return Store(
        supplier.name,
        _changelog_kind(supplier),
        builder.logging.enabled,
        _overrides_of(builder.logging),
        supplier.retention_ms if supplier.kind not in _UNTIMED else None,
        builder if builder.shared else object(),
        from_builder=True,
        keeps=_built_settings(builder),
    )


def _built_settings(builder: StoreBuilder) -> StoreSettings:
    supplier = builder.supplier
    return StoreSettings(
        supplier.kind.value,
        with_serdes(RecordFormat(), builder.serdes),
        supplier.retention_ms,
        supplier.window_size_ms,
        retain_duplicates=supplier.retain_duplicates,
        caching=bool(builder.caching) and not _keeps_no_cache(supplier),
        in_memory=supplier.type is StoreType.IN_MEMORY,
        keyed_by_record=builder.keyed_by_record,
    )


def builder_problems(builder: StoreBuilder, at: Location | None) -> Iterator[Problem]:
    """Return the problems that a `StoreBuilder` and the supplier that it uses report."""
    yield from supplier_problems(builder.supplier, at)
    if builder.caching and builder.supplier.kind is StoreKind.VERSIONED_KEY_VALUE:
        yield topology_error(
            f"Store {builder.name} is versioned, and has a record cache.",
            throws="IllegalStateException",
            node=builder.name,
            expected="a versioned store without a cache",
            found="caching: true",
            at=at,
            fix="Remove `caching`.",
        )


def supplier_problems(supplier: StoreSupplier, at: Location | None) -> Iterator[Problem]:
    """Return the problems that the factory methods of `Stores` report."""
    retention, size = supplier.retention_ms, supplier.window_size_ms
    if retention is not None and retention < 0:
        yield _out_of_range(supplier, "retention", "0ms or more", duration_text(retention), at)
    if supplier.kind in WINDOW_KINDS and retention is not None and size is not None:
        if size < 0:
            yield _out_of_range(supplier, "windowSize", "0ms or more", duration_text(size), at)
        elif size > retention:
            yield _out_of_range(
                supplier,
                "windowSize",
                f"at most the retention, {duration_text(retention)}",
                duration_text(size),
                at,
            )
    yield from _options_without_effect(supplier, at)


_KINDS_WITH = {
    "retention": WINDOW_KINDS | SESSION_KINDS | {StoreKind.VERSIONED_KEY_VALUE},
    "windowSize": WINDOW_KINDS,
    "retainDuplicates": WINDOW_KINDS,
}
"""Option → the kinds of stores whose factory has it."""


def _options_without_effect(supplier: StoreSupplier, at: Location | None) -> Iterator[Problem]:
    """Warn of the options that the factory of `Stores` for this kind does not have."""
    given = {
        "retention": supplier.retention_ms is not None,
        "windowSize": supplier.window_size_ms is not None,
        "retainDuplicates": supplier.retain_duplicates,
    }
    for option, kinds in _KINDS_WITH.items():
        if given[option] and supplier.kind not in kinds:
            names = sorted(kind.value for kind in kinds)
            named = f"{', '.join(names[:-1])} or {names[-1]}"
            yield lint_problem(
                ProblemCode.CONFIG_HAS_NO_EFFECT,
                f"The `{option}` of store {supplier.name} has no effect.",
                node=supplier.name,
                expected=f"a store of kind {named}",
                found=f"a store of kind {supplier.kind.value}",
                why="A store of this kind has no such option in Kafka Streams"
                + (": it keeps every key." if option == "retention" else "."),
                at=at,
                fix=f"Remove `{option}`, or set `kind` to {named}.",
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
    # `WindowStoreBuilder` sets cleanup.policy=delete for duplicates, `TimestampedWindowStoreBuilder` does not
    if supplier.kind is StoreKind.WINDOW and supplier.retain_duplicates:
        return ChangelogKind.WINDOWED_DUPLICATES
    return ChangelogKind.WINDOWED


def window_span_ms(window: Window) -> int:
    """Return the smallest retention of a window's store, which is also the default, in milliseconds."""
    if isinstance(window, UnlimitedWindow):
        return LONGEST_MS
    if isinstance(window, SlidingWindow):
        return 2 * window.difference_ms + window.grace_ms
    if isinstance(window, SessionWindow):
        return window.gap_ms + window.grace_ms
    return window.size_ms + window.grace_ms


def close_grace_ms(window: Window) -> int:
    """Return how long `suppress(untilWindowCloses)` waits after the window's end, in milliseconds."""
    if isinstance(window, UnlimitedWindow):
        return 0
    if isinstance(window, SessionWindow):
        return window.gap_ms + window.grace_ms
    return window.grace_ms


def join_retention_ms(window: JoinWindow) -> int:
    """Return how long a store of a stream-stream join keeps a record, in ms of stream time."""
    return window.before_ms + window.after_ms + window.grace_ms


def _logging_of(materialized: Materialized | None) -> Logging:
    return (materialized.logging if materialized is not None else None) or Logging()


def _has_cache(materialized: Materialized | None) -> bool:
    """Return whether the store of an operator has a cache: unless the user disables it."""
    return materialized is None or materialized.caching is not False


def _keeps_no_cache(supplier: StoreSupplier) -> bool:
    """Return whether the supplier's builder ignores `withCachingEnabled`."""
    return supplier.kind is StoreKind.VERSIONED_KEY_VALUE or supplier.retain_duplicates


def _in_memory(materialized: Materialized | None) -> bool | None:
    """Return whether the store is in memory; None = the config decides."""
    if materialized is None:
        return None
    of = materialized.supplier.type if materialized.supplier is not None else materialized.type
    return None if of is None else of is StoreType.IN_MEMORY


def _overrides_of(logging: Logging) -> Mapping[str, str]:
    return logging.overrides if logging.enabled else _NOTHING
