"""Open the stores of a task: typed stores over the overlays of a batch, with changelog and cache."""

from collections.abc import Callable, Iterable
from typing import NoReturn, Protocol

import attrs

from headwater.model.formats import Format, StoreSettings
from headwater.model.nodes import StateStore
from headwater_spark.engine.program_interface import Program, Serde
from headwater_spark.engine.records import Clock, CurrentRecord, Headers, Value
from headwater_spark.engine.stores.buffers import BufferSize, JoinBufferBytes, SuppressBytes
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.key_value import KeyValueBytes, ListBytes, TimestampedKeyValueBytes
from headwater_spark.engine.stores.layers import NO_TIMESTAMP, Append, Logged, with_timestamp
from headwater_spark.engine.stores.overlay import Overlay
from headwater_spark.engine.stores.record_cache import RecordCache
from headwater_spark.engine.stores.segments import SEGMENT
from headwater_spark.engine.stores.versioned import VersionedBytes
from headwater_spark.engine.stores.windows import SessionBytes, TimestampedWindowBytes, WindowBytes

_BYTES = Format("bytes")

Restore = Callable[[bytes, bytes | None, int], None]
"""Applies a changelog record (key, value, timestamp) to the store."""


class StoreServices(Protocol):
    """What stores use of their task (`task_context.TaskContext`)."""

    program: Program
    current: CurrentRecord
    partition: int
    append: Append
    record_cache: RecordCache

    def overlay(self, name: str) -> Overlay: ...
    def clock(self, name: str) -> Clock: ...
    def wall_clock(self) -> int: ...
    def flush_failed(self, error: Exception) -> NoReturn: ...


@attrs.frozen
class OpenStore:
    """A store of a task: its typed interface, how to restore it, what to do at the end of a batch."""

    store: StateStore
    typed: Value
    restore: Restore
    cached: Cached | None = None
    at_end: tuple[Callable[[], None], ...] = ()
    """Called after the caches are flushed."""


def open_store(store: StateStore, services: StoreServices, *, cache: bool, emits_on_close: bool) -> OpenStore:
    """Open a store of any kind. Raises ValueError for a store without settings (`keeps`)."""
    if store.keeps is None:
        raise ValueError(f"the settings of the store {store.name} are unknown")
    opening = _StoreOpening(store, store.keeps, services, cache, emits_on_close)
    return _OPENERS[store.keeps.kind](opening)


@attrs.frozen
class _StoreOpening:
    """One store, and what its layers are built from."""

    store: StateStore
    settings: StoreSettings
    services: StoreServices
    cache: bool
    emits_on_close: bool

    @property
    def overlay(self) -> Overlay:
        return self.services.overlay(self.store.name)

    @property
    def without_timestamps(self) -> bool:
        """Return whether values are stored without timestamp: not if a cache has them."""
        return self.settings.without_timestamps and not self.cache

    @property
    def is_in_memory(self) -> bool:
        chosen = self.settings.in_memory
        return self.services.program.settings.stores_in_memory if chosen is None else chosen

    def clock(self, what: str) -> Clock:
        return self.services.clock(f"{self.store.name}/{what}")

    def serdes(self) -> tuple[Serde, Serde]:
        serde, record = self.services.program.serde, self.settings.format
        return serde(record.key, "key"), serde(record.value, "value")

    def changelog(self) -> tuple[str, int, Append] | None:
        topic = self.services.program.changelog(self.store.name)
        return None if topic is None else (topic, self.services.partition, self.services.append)

    def log_with_headers(self) -> Callable[[bytes, bytes | None, Headers], None]:
        """Return the function that logs with the wall-clock time, as Kafka Streams sets no timestamp here."""
        changelog, wall_clock = self.changelog(), self.services.wall_clock
        if changelog is None:
            return _log_nothing
        topic, partition, append = changelog

        def log(key: bytes, value: bytes | None, headers: Headers) -> None:
            append((topic, partition, key, value, wall_clock(), headers))

        return log

    def layered_store(self, *, prefix: int = 0, timestamped: bool = False) -> tuple[Logged, Logged | Cached]:
        """Return the changelog layer, and the layer below the typed store."""
        logged = Logged(
            self.overlay,
            self.changelog(),
            prefix=prefix,
            timestamped=timestamped,
            without_timestamps=self.without_timestamps,
            logs_headers=self.settings.logs_headers,
        )
        if not self.cache:
            return logged, logged
        services = self.services
        fail, keeps_reads = services.flush_failed, prefix == 0  # not in `CachingWindowStore`
        return logged, Cached(logged, services.current, services.record_cache, fail, keeps_reads=keeps_reads)

    def opened_store(
        self,
        typed: Value,
        restore: Restore,
        below: Logged | Cached | None = None,
        at_end: Iterable[Callable[[], None]] = (),
    ) -> OpenStore:
        cached = below if isinstance(below, Cached) else None
        return OpenStore(self.store, typed, restore, cached, tuple(at_end))


def _log_nothing(key: bytes, value: bytes | None, headers: Headers) -> None:
    """Log no change: the store has no changelog."""


def _key_value(opening: _StoreOpening) -> OpenStore:
    _, below = opening.layered_store()
    typed = KeyValueBytes(below, *opening.serdes(), opening.services.current.write_context)
    return opening.opened_store(typed, _plain_restore(opening.overlay), below)


def _open_timestamped(opening: _StoreOpening) -> OpenStore:
    return _timestamped_of(opening, *opening.serdes())


def _open_subscription(opening: _StoreOpening) -> OpenStore:
    """Open a store of bytes: keys and values contain more than the formats describe."""
    serde = opening.services.program.serde
    return _timestamped_of(opening, serde(_BYTES, "key"), serde(_BYTES, "value"))


def _timestamped_of(opening: _StoreOpening, key_serde: Serde, value_serde: Serde) -> OpenStore:
    _, below = opening.layered_store(timestamped=True)
    typed = TimestampedKeyValueBytes(below, key_serde, value_serde, opening.services.current.write_context)
    overlay, without_timestamps = opening.overlay, opening.without_timestamps

    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        time = NO_TIMESTAMP if without_timestamps else timestamp
        overlay.written[key] = None if value is None else with_timestamp(value, time)

    return opening.opened_store(typed, restore, below)


def _open_versioned(opening: _StoreOpening) -> OpenStore:
    changelog = opening.changelog()
    retention = opening.settings.retention_ms or 0

    def log(key: bytes, value: bytes | None, valid_from: int) -> None:
        if changelog is not None:
            topic, partition, append = changelog
            append((topic, partition, key, value, valid_from, ()))

    key, value = opening.serdes()
    observed = opening.clock("time")
    typed = VersionedBytes(opening.overlay, key, value, log, retention_ms=retention, observed=observed)

    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        typed.put_bytes(key, value, timestamp, log=False)

    return opening.opened_store(typed, restore, at_end=(typed.end_batch,))


def _open_window(opening: _StoreOpening) -> OpenStore:
    timestamped = opening.settings.kind == "timestampedWindow"
    _, below = opening.layered_store(prefix=SEGMENT, timestamped=timestamped)
    make = TimestampedWindowBytes if timestamped else WindowBytes
    typed = make(
        below,
        *opening.serdes(),
        opening.services.current.write_context,
        retention_ms=opening.settings.retention_ms or 0,
        size_ms=opening.settings.window_size_ms or 0,
        observed=opening.clock("time"),
        sequence=opening.clock("sequence") if opening.settings.retain_duplicates else None,
        nulls_move_time=opening.is_in_memory,
        emits_on_close=opening.emits_on_close,
        ordered_by_key=opening.settings.ordered_by_key,
    )

    without_timestamps = opening.without_timestamps

    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        time = NO_TIMESTAMP if without_timestamps else timestamp
        typed.restore(key, with_timestamp(value, time) if timestamped and value is not None else value)

    return opening.opened_store(typed, restore, below, (typed.expire,))


def _open_session(opening: _StoreOpening) -> OpenStore:
    _, below = opening.layered_store(prefix=SEGMENT)
    typed = SessionBytes(
        below,
        *opening.serdes(),
        opening.services.current.write_context,
        retention_ms=opening.settings.retention_ms or 0,
        observed=opening.clock("time"),
        emits_on_close=opening.emits_on_close,
    )
    return opening.opened_store(typed, _untimed_restore(typed.restore), below, (typed.expire,))


def _open_list(opening: _StoreOpening) -> OpenStore:
    logged, _ = opening.layered_store()
    key, left = opening.serdes()
    right = opening.services.program.serde((opening.settings.right or opening.settings.format).value, "value")
    typed = ListBytes(logged, key, left, right, opening.services.current.write_context)
    return opening.opened_store(typed, _plain_restore(opening.overlay))


def _open_suppress(opening: _StoreOpening) -> OpenStore:
    size = BufferSize(opening.clock("records"), opening.clock("bytes"))
    typed = SuppressBytes(opening.overlay, *opening.serdes(), opening.log_with_headers(), size)
    return opening.opened_store(typed, _untimed_restore(typed.restore), at_end=(typed.flush,))


def _join_buffer(opening: _StoreOpening) -> OpenStore:
    typed = JoinBufferBytes(
        opening.overlay,
        *opening.serdes(),
        opening.log_with_headers(),
        grace_ms=opening.settings.retention_ms or 0,
        observed=opening.clock("time"),
        sequence=opening.clock("sequence"),
    )
    return opening.opened_store(typed, _untimed_restore(typed.restore))


def _plain_restore(overlay: Overlay) -> Restore:
    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        del timestamp
        overlay.written[key] = value

    return restore


def _untimed_restore(restore: Callable[[bytes, bytes | None], None]) -> Restore:
    return lambda key, value, timestamp: restore(key, value)  # noqa: ARG005 - the signature of all kinds


_OPENERS: dict[str, Callable[[_StoreOpening], OpenStore]] = {
    "keyValue": _key_value,
    "timestampedKeyValue": _open_timestamped,
    "versionedKeyValue": _open_versioned,
    "window": _open_window,
    "timestampedWindow": _open_window,
    "session": _open_session,
    "list": _open_list,
    "suppress": _open_suppress,
    "subscription": _open_subscription,
    "joinBuffer": _join_buffer,
}
