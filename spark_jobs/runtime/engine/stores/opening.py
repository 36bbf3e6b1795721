"""Stores opened for a task: typed views over a batch's overlays, with changelog and cache."""

from collections.abc import Callable, Iterable
from typing import Protocol

import attrs

from infra.model.behaviors import Format, StoreSettings
from infra.model.nodes import StateStore
from spark_jobs.runtime.engine.clocks import Clock
from spark_jobs.runtime.engine.program_interface import Program, Serde
from spark_jobs.runtime.engine.records import CurrentRecord, Headers, Value
from spark_jobs.runtime.engine.stores.join_buffer import JoinBufferBytes
from spark_jobs.runtime.engine.stores.key_value import KeyValueBytes, TimestampedKeyValueBytes
from spark_jobs.runtime.engine.stores.layers import NO_TIMESTAMP, Append, Cached, Logged, with_timestamp
from spark_jobs.runtime.engine.stores.lists import ListBytes
from spark_jobs.runtime.engine.stores.overlay import Overlay
from spark_jobs.runtime.engine.stores.segments import SEGMENT
from spark_jobs.runtime.engine.stores.sessions import SessionBytes
from spark_jobs.runtime.engine.stores.suppress_buffer import BufferSize, SuppressBytes
from spark_jobs.runtime.engine.stores.versioned import VersionedBytes
from spark_jobs.runtime.engine.stores.windows import TimestampedWindowBytes, WindowBytes

_BYTES = Format("bytes")

Restore = Callable[[bytes, bytes | None, int], None]
"""(key, value, timestamp) of a changelog record → the store."""


class StoreServices(Protocol):
    """What a task gives to its stores."""

    program: Program
    current: CurrentRecord
    partition: int
    append: Append

    def overlay(self, name: str) -> Overlay: ...
    def clock(self, name: str) -> Clock: ...
    def wall_clock(self) -> int: ...


@attrs.frozen
class OpenStore:
    """A store of a task: what users and operators see, how it is restored, what the end of a batch does."""

    kept: StateStore
    typed: Value
    restore: Restore
    cached: Cached | None = None
    at_end: tuple[Callable[[], None], ...] = ()
    """After the caches were flushed."""


def open_store(kept: StateStore, services: StoreServices, *, cache: bool, emits_on_close: bool) -> OpenStore:
    """Opens a store of any kind. Raises ValueError for a store without `keeps`."""
    if kept.keeps is None:
        raise ValueError(f"nothing says what the store {kept.name} keeps")
    return _OPENERS[kept.keeps.kind](_Opening(kept, kept.keeps, services, cache, emits_on_close))


@attrs.frozen
class _Opening:
    kept: StateStore
    keeps: StoreSettings
    services: StoreServices
    cache: bool
    emits_on_close: bool

    @property
    def overlay(self) -> Overlay:
        return self.services.overlay(self.kept.name)

    @property
    def shows_all_closed(self) -> bool:
        """With a cache nothing that closes is lost."""
        return self.emits_on_close and self.services.program.settings.cache_max_bytes > 0

    @property
    def without_timestamps(self) -> bool:
        """With a cache values are read from there."""
        return self.keeps.without_timestamps and not self.cache

    def clock(self, what: str) -> Clock:
        return self.services.clock(f"{self.kept.name}/{what}")

    def serdes(self) -> tuple[Serde, Serde]:
        serde, record = self.services.program.serde, self.keeps.format
        return serde(record.key, "key"), serde(record.value, "value")

    def changelog(self) -> tuple[str, int, Append] | None:
        topic = self.services.program.changelog(self.kept.name)
        return None if topic is None else (topic, self.services.partition, self.services.append)

    def log_with_headers(self) -> Callable[[bytes, bytes | None, Headers], None]:
        """Kafka Streams gives these records no timestamp: the producer's clock does."""
        changelog, wall_clock = self.changelog(), self.services.wall_clock
        if changelog is None:
            return _log_nothing
        topic, partition, append = changelog

        def log(key: bytes, value: bytes | None, headers: Headers) -> None:
            append((topic, partition, key, value, wall_clock(), headers))

        return log

    def layered(self, *, prefix: int = 0, timestamped: bool = False) -> tuple[Logged, Logged | Cached]:
        """The changelog's layer, and what lies under the typed store."""
        logged = Logged(
            self.overlay,
            self.changelog(),
            prefix=prefix,
            timestamped=timestamped,
            without_timestamps=self.without_timestamps,
        )
        return logged, Cached(logged) if self.cache else logged

    def opened(
        self,
        typed: Value,
        restore: Restore,
        below: Logged | Cached | None = None,
        at_end: Iterable[Callable[[], None]] = (),
    ) -> OpenStore:
        cached = below if isinstance(below, Cached) else None
        return OpenStore(self.kept, typed, restore, cached, tuple(at_end))


def _log_nothing(key: bytes, value: bytes | None, headers: Headers) -> None:
    """A store without a changelog."""


def _key_value(opening: _Opening) -> OpenStore:
    _, below = opening.layered()
    typed = KeyValueBytes(below, *opening.serdes(), opening.services.current.write_context)
    return opening.opened(typed, _plain(opening.overlay), below)


def _timestamped(opening: _Opening) -> OpenStore:
    return _timestamped_of(opening, *opening.serdes())


def _subscription(opening: _Opening) -> OpenStore:
    """Keys and values are bytes: they hold more than the formats say."""
    serde = opening.services.program.serde
    return _timestamped_of(opening, serde(_BYTES, "key"), serde(_BYTES, "value"))


def _timestamped_of(opening: _Opening, key_serde: Serde, value_serde: Serde) -> OpenStore:
    _, below = opening.layered(timestamped=True)
    typed = TimestampedKeyValueBytes(below, key_serde, value_serde, opening.services.current.write_context)
    overlay, without_timestamps = opening.overlay, opening.without_timestamps

    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        time = NO_TIMESTAMP if without_timestamps else timestamp
        overlay.written[key] = None if value is None else with_timestamp(value, time)

    return opening.opened(typed, restore, below)


def _versioned(opening: _Opening) -> OpenStore:
    changelog = opening.changelog()
    retention = opening.keeps.retention_ms or 0

    def log(key: bytes, value: bytes | None, valid_from: int) -> None:
        if changelog is not None:
            topic, partition, append = changelog
            append((topic, partition, key, value, valid_from, ()))

    key, value = opening.serdes()
    observed = opening.clock("time")
    typed = VersionedBytes(opening.overlay, key, value, log, retention_ms=retention, observed=observed)

    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        typed.put_bytes(key, value, timestamp, log=False)

    return opening.opened(typed, restore)


def _window(opening: _Opening) -> OpenStore:
    timestamped = opening.keeps.kind == "timestampedWindow"
    _, below = opening.layered(prefix=SEGMENT, timestamped=timestamped)
    make = TimestampedWindowBytes if timestamped else WindowBytes
    typed = make(
        below,
        *opening.serdes(),
        opening.services.current.write_context,
        retention_ms=opening.keeps.retention_ms or 0,
        size_ms=opening.keeps.window_size_ms or 0,
        observed=opening.clock("time"),
        sequence=opening.clock("sequence") if opening.keeps.retain_duplicates else None,
        nulls_move_time=opening.keeps.in_memory,
        emits_on_close=opening.emits_on_close,
        ordered_by_key=opening.keeps.ordered_by_key,
        shows_all_closed=opening.shows_all_closed,
    )

    without_timestamps = opening.without_timestamps

    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        time = NO_TIMESTAMP if without_timestamps else timestamp
        typed.restore(key, with_timestamp(value, time) if timestamped and value is not None else value)

    return opening.opened(typed, restore, below, (typed.expire,))


def _session(opening: _Opening) -> OpenStore:
    _, below = opening.layered(prefix=SEGMENT)
    typed = SessionBytes(
        below,
        *opening.serdes(),
        opening.services.current.write_context,
        retention_ms=opening.keeps.retention_ms or 0,
        observed=opening.clock("time"),
        emits_on_close=opening.emits_on_close,
        shows_all_closed=opening.shows_all_closed,
    )
    return opening.opened(typed, _untimed(typed.restore), below, (typed.expire,))


def _list(opening: _Opening) -> OpenStore:
    logged, _ = opening.layered()
    key, left = opening.serdes()
    right = opening.services.program.serde((opening.keeps.right or opening.keeps.format).value, "value")
    typed = ListBytes(logged, key, left, right, opening.services.current.write_context)
    return opening.opened(typed, _plain(opening.overlay))


def _suppress(opening: _Opening) -> OpenStore:
    size = BufferSize(opening.clock("records"), opening.clock("bytes"))
    typed = SuppressBytes(opening.overlay, *opening.serdes(), opening.log_with_headers(), size)
    return opening.opened(typed, _untimed(typed.restore), at_end=(typed.flush,))


def _join_buffer(opening: _Opening) -> OpenStore:
    typed = JoinBufferBytes(
        opening.overlay,
        *opening.serdes(),
        opening.log_with_headers(),
        grace_ms=opening.keeps.retention_ms or 0,
        observed=opening.clock("time"),
        sequence=opening.clock("sequence"),
    )
    return opening.opened(typed, _untimed(typed.restore))


def _plain(overlay: Overlay) -> Restore:
    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        del timestamp
        overlay.written[key] = value

    return restore


def _untimed(restore: Callable[[bytes, bytes | None], None]) -> Restore:
    return lambda key, value, timestamp: restore(key, value)  # noqa: ARG005 - a shape that all kinds share


_OPENERS: dict[str, Callable[[_Opening], OpenStore]] = {
    "keyValue": _key_value,
    "timestampedKeyValue": _timestamped,
    "versionedKeyValue": _versioned,
    "window": _window,
    "timestampedWindow": _window,
    "session": _session,
    "list": _list,
    "suppress": _suppress,
    "subscription": _subscription,
    "joinBuffer": _join_buffer,
}
