"""A document under construction, to which random calls add steps."""

import random
from collections.abc import Collection
from typing import Any, Literal

import attrs

from tests.runtime.engine.fuzzing.functions import PARTIAL, Functions

Options = dict[str, Any]
Kind = Literal["stream", "table", "global", "counts"]
VALUE = {"serdes": {"value": "default"}}
BOTH = {"serdes": {"key": "default", "value": "default"}}
KEY = {"serdes": {"key": "default"}}
"""Where Kafka Streams loses a serde, the document has `default`."""
_KEEP_VALUES = frozenset(
    {"filter", "filterNot", "peek", "selectKey", "repartition", "suppress", "toStream", "toTable"}
)
_CONTINUE = "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler"


class NoPartnerError(Exception):
    """There is no handle to join with."""


@attrs.frozen
class Handle:
    """A result. `windowed`: its keys are; `versioned`: its store has versions; `counts`: it has numbers."""

    alias: str
    kind: Kind
    windowed: bool = False
    versioned: bool = False
    counts: bool = False


@attrs.define
class Draft:
    random: random.Random
    functions: Functions = PARTIAL
    steps: list[Options] = attrs.field(factory=list)
    handles: list[Handle] = attrs.field(factory=list)
    topics: list[str] = attrs.field(factory=list)
    has_counts: bool = True
    """Some results are counts, which are whole numbers."""
    survives: bool = False
    """Records that a processor cannot process are skipped."""
    stores: set[str] = attrs.field(factory=set)
    """What may exist only once: stores of processors, processors with punctuations."""
    _names: int = 0

    def emit(
        self,
        call: str,
        options: Options,
        kind: Kind,
        on: Handle | None = None,
        *,
        windowed: bool = False,
        versioned: bool = False,
    ) -> None:
        """Add a step whose result other steps can use."""
        counts = call == "count" or (on is not None and on.counts and call in _KEEP_VALUES)
        handle = Handle(self.name("h"), kind, windowed, versioned, counts)
        given = {"from": on.alias} if on is not None else {}
        self.steps.append({call: {**given, **options, "as": handle.alias}})
        self.handles.append(handle)
        self.emitted(handle.alias, [on.alias if on is not None else "", options.get("with", "")])

    def emitted(self, alias: str, parents: Collection[str]) -> None:
        """Called for each result, with the handles from which it is made."""

    def topic(self) -> str:
        self.topics.append(f"t{len(self.topics)}")
        return self.topics[-1]

    def partner(self, kind: Kind, *, windowed: bool = False) -> Handle:
        """Return a random handle of this kind. Raises NoPartnerError."""
        found = [each for each in self.handles if each.kind == kind and each.windowed == windowed]
        if not found:
            raise NoPartnerError
        return self.random.choice(found)

    def table_to_join(self, left: Handle) -> Handle:
        """Return a table for the other side. Raises NoPartnerError."""
        del left
        return self.partner("table")

    def name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def maybe_named(self) -> Options:
        return {"name": self.name("n")} if self.chance(40) else {}

    def handlers(self) -> Options:
        return {"processing.exception.handler": _CONTINUE} if self.survives else {}

    def where(self) -> str:
        return self.random.choice([self.functions.where, self.functions.other_where])

    def init(self) -> str:
        return self.functions.no_init if self.chance(15) else self.functions.init

    def ms(self, low: int, high: int) -> int:
        """Return a duration in whole seconds."""
        return self.random.randint(low, high) * 1000

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def store(self, percent: int, *, in_memory: bool = True) -> Options:
        """Return the settings of a new named store, or nothing."""
        if not self.chance(percent):
            return {}
        return {"materialized": {"store": self.name("st"), **self.store_options(in_memory=in_memory)}}

    def store_options(self, *, in_memory: bool = True) -> Options:
        """Return random options for type, changelog and cache of a store."""
        kind = {"type": "in-memory"} if in_memory and self.chance(30) else {}
        logging = {"logging": False} if self.chance(10) else {}
        caching = {"caching": self.chance(50)} if self.chance(20) else {}
        return {**kind, **logging, **caching}

    def key_value_store(self, percent: int) -> tuple[Options, bool]:
        """Return a random store of a table, and whether it has versions."""
        if self.chance(75):
            return self.store(percent), False
        supplier: Options = {"name": self.name("v")}
        versioned = self.chance(60)
        if versioned:
            supplier |= {"kind": "versionedKeyValue", "retention": self.ms(5, 60)}
        else:
            supplier["kind"] = self.random.choice(["keyValue", "timestampedKeyValue"])
            supplier |= {"type": "in-memory"} if self.chance(40) else {}
        return {"materialized": {"supplier": supplier}}, versioned
