"""Random names, stores and stores' options."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

T = TypeVar("T")
Options = dict[str, Any]

_ODD_NAMES = (
    "KSTREAM-FOO-0000000099",
    "KSTREAM-KEY-SELECT-0000000001",
    "KSTREAM-SOURCE-0000000000-repartition",
    "mine-repartition",
    "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000003-topic",
    "x-changelog",
)
_SUFFIXES = (
    "",
    "-store",
    "-repartition",
    "-changelog",
    "-left",
    "-right",
    "-left-repartition",
    "-source",
    "-sink",
    "-filter",
    "-this-join",
    "-other-join",
    "-outer-this-join",
    "-this-join-store",
    "-outer-other-join-store",
    "-left-shared-join-store",
    "-this-windowed",
    "-merge",
    "-join-this",
    "-result",
    "-Buffer",
    "-topic",
    "-pk",
    "-cogroup-agg-0",
    "-cogroup-merge",
    "-subscription-store",
    "-subscription-receive",
    "-subscription-join-foreign",
    "-subscription-response-resolver",
    "-subscription-registration-topic",
    "-subscription-response-topic",
    "-subscription-response-sink",
    "-STATE-STORE-0000000002",
)
"""Suffixes that Kafka Streams appends to the names of users."""
_PREFIXES = (
    "KSTREAM-AGGREGATE-STATE-STORE-",
    "KSTREAM-AGGREGATE-",
    "KSTREAM-REDUCE-STATE-STORE-",
    "KSTREAM-SOURCE-",
    "KSTREAM-SINK-",
    "KSTREAM-FILTER-",
    "KSTREAM-KEY-SELECT-",
    "KSTREAM-REPARTITION-",
    "KSTREAM-JOINTHIS-",
    "KSTREAM-WINDOWED-",
    "KSTREAM-PROCESSOR-",
    "KSTREAM-TOTABLE-",
    "KTABLE-SOURCE-",
    "KTABLE-FILTER-",
    "KTABLE-TRANSFORMVALUES-",
    "KTABLE-AGGREGATE-",
    "KTABLE-SUPPRESS-",
    "KTABLE-SUPPRESS-STATE-STORE-",
    "KTABLE-FK-JOIN-OUTPUT-",
    "COGROUPKSTREAM-MERGE-",
)
_BAD_NAMES = ("bad name", "..", ".", "sl/ash", "n" * 249, "n" * 230)
_DURATIONS = {"13h": 46_800_000, "1h": 3_600_000, "5m": 300_000, "1m": 60_000, "10s": 10_000, "3s": 3_000}
_LOGGING: tuple[bool | Options, ...] = (
    False,
    True,
    {"min.insync.replicas": 2},
    {"cleanup.policy": "delete"},
    {"retention.ms": 5000, "cleanup.policy": "compact,delete"},
    {"min.compaction.lag.ms": 7},
)


@attrs.frozen
class Choices:
    """Random choices; `number(n)` returns one of 0 … n-1."""

    number: Callable[[int], int]

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(len(options))]

    def chance(self, percent: int) -> bool:
        return self.number(100) >= 100 - percent


@attrs.define
class StoreGenerator:
    """Generates names and stores; `bad` allows names that Kafka Streams refuses."""

    choices: Choices
    bad: bool = False
    rare: bool = False
    """Whether there are rare options and combinations, too."""
    similar: bool = False
    """Whether names resemble each other and names that Kafka Streams generates."""
    stores: list[str] = attrs.field(factory=list)
    builders: list[Options] = attrs.field(factory=list)
    stores_of_tables: list[str] = attrs.field(factory=list)
    names: list[str] = attrs.field(factory=list)
    serial: int = 0

    def rarely(self, percent: int) -> bool:
        return self.rare and self.choices.chance(percent)

    def fresh(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def name(self, percent: int = 30) -> Options:
        if not self.choices.chance(percent):
            return {}
        return {"name": self.any_name("n")}

    def any_name(self, prefix: str) -> str:
        if self.choices.chance(5):
            return self.choices.pick(_ODD_NAMES)
        if self.bad and self.choices.chance(10):
            empty: tuple[str, ...] = ("",) if self.rare else ()
            return self.choices.pick((*_BAD_NAMES, *empty, *self.names))
        name = self.similar_name(prefix) if self.similar and self.choices.chance(60) else self.fresh(prefix)
        self.names.append(name)
        return name

    def similar_name(self, prefix: str) -> str:
        """Return a name like one that Kafka Streams generates, often from another name of the document."""
        form = self.choices.number(10)
        if form <= 1:
            index = self.choices.number(20)
            return f"{self.choices.pick(_PREFIXES)}{index:010}" + self.choices.pick(("", "", "", "-store"))
        base = self.choices.pick(self.names) if self.names and form <= 7 else self.fresh(prefix)
        return base + self.choices.pick(_SUFFIXES)

    def logging(self, percent: int = 25) -> Options:
        return {"logging": self.choices.pick(_LOGGING)} if self.choices.chance(percent) else {}

    def materialized(self, kind: str = "keyValue", window: Mapping[str, Any] | None = None) -> Options:
        form = self.choices.number(8)
        if form <= 2:
            return {}
        if form == 3:
            return {"materialized": {}}
        if form == 4:
            return {"materialized": self.any_name("s")}
        span = _span(window) if window else 0
        kept = max(0, span + self.choices.pick((0, 1000, 86_400_000) if not self.bad else (0, -1000, 5000)))
        if form == 5 and kind != "unlimited":
            return {"materialized": {"supplier": self._supplier(kind, window, kept), **self.logging()}}
        options: Options = {"store": self.any_name("s")} if self.choices.chance(60) else {}
        self.stores_of_tables += options.values()
        if self.choices.chance(30):
            options["type"] = self.choices.pick(("rocksDB", "in-memory"))
        if window and "unlimited" not in window and self.choices.chance(50):
            options["retention"] = kept
        if self.choices.chance(20):
            options["caching"] = self.choices.chance(50)
        if self.choices.chance(20):
            options["serdes"] = {"key": "string", "value": "json"}
        return {"materialized": options | self.logging()}

    def _supplier(self, kind: str, window: Mapping[str, Any] | None, kept: int) -> Options:
        supplier: Options = {"name": self.any_name("s"), "kind": kind}
        if kind == "keyValue":
            supplier["kind"] = self.choices.pick(("timestampedKeyValue", "keyValue", "versionedKeyValue"))
        elif kind == "window":
            supplier["kind"] = self.choices.pick(("timestampedWindow", "window"))
            supplier["windowSize"] = _window_size(window or {})
        if supplier["kind"] == "versionedKeyValue":
            supplier["retention"] = self.choices.pick((3_600_000, 1, 600_000))
        elif self.choices.chance(30):
            supplier["type"] = "in-memory"
        if kind != "keyValue":
            supplier["retention"] = max(kept, _window_size(window or {}))
        return supplier

    def builder(self) -> Options:
        """Return the options of a new store or an earlier one. A shared one is the same builder object."""
        again = [builder for builder in self.builders if self.bad or "shared" in builder]
        if again and self.choices.chance(15 if self.bad else 40):
            return dict(self.choices.pick(again))
        self.builders.append(self._new_builder())
        return dict(self.builders[-1])

    def _new_builder(self) -> Options:
        kind = self.choices.pick(
            ("keyValue", "timestampedKeyValue", "versionedKeyValue", "window", "timestampedWindow", "session")
        )
        name = self.any_name("store") if self.similar else self.fresh("store")
        if self.bad and self.stores and self.choices.chance(20):
            name = self.choices.pick(self.stores)
        builder: Options = {"name": name, "kind": kind}
        if kind not in {"keyValue", "timestampedKeyValue"}:
            builder["retention"] = self.choices.pick((3_600_000, 60_000, "1h30m"))
        if kind.lower().endswith("window"):
            builder["windowSize"] = 30_000
            if self.choices.chance(30):
                builder["retainDuplicates"] = True
        if kind != "versionedKeyValue" and self.choices.chance(25):
            builder["type"] = "in-memory"
        if self.choices.chance(40):
            builder["shared"] = True
        return builder | self.logging()

    def connected(self) -> Options:
        stores: list[Any] = []
        if self.stores and self.choices.chance(60):
            stores.append(self.choices.pick(self.stores))
        if self.stores_of_tables and self.rarely(10):
            stores.append(self.choices.pick(self.stores_of_tables))
        if self.bad and self.choices.chance(10):
            stores.append(self.choices.pick(("unheard-of", *self.names)))
        if self.choices.chance(30):
            stores.append(self.builder())
            if self.choices.chance(50):
                self.stores.append(stores[-1]["name"])
        if self.rarely(2):
            many = [self.builder() for _ in range(self.choices.number(20))]
            stores += [each for number, each in enumerate(many) if each not in [*stores, *many[:number]]]
        return {"stores": stores} if stores else {}

    def _some_stores(self) -> list[str]:
        known = [*self.stores, *self.stores_of_tables]
        if not known or not self.rarely(40):
            return []
        return [self.choices.pick(known) for _ in range(1 + self.choices.number(3))]


def milliseconds(duration: int | str) -> int:
    return _DURATIONS[duration] if isinstance(duration, str) else duration


def _window_size(window: Mapping[str, Any]) -> int:
    ((kind, options),) = window.items()
    return (
        milliseconds((options or {}).get("size") or (options or {}).get("difference") or 0)
        if kind != "session"
        else 0
    )


def _span(window: Mapping[str, Any]) -> int:
    """Return the minimum retention of the windows in milliseconds."""
    ((kind, options),) = window.items()
    if kind == "unlimited":
        return 0
    length = (
        2 * milliseconds(options["difference"])
        if kind == "sliding"
        else milliseconds(options.get("size") or options.get("gap"))
    )
    return length + milliseconds(options.get("grace", 0))
