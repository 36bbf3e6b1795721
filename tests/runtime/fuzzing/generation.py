"""Random topologies that data can flow through, with the functions that the Java helper has.

Every handle ends in a sink of its own, so that nothing that differs stays unseen. Where Kafka Streams forgets
a serde the document says `default`.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs

from tests.runtime.fuzzing import functions as sql

Options = dict[str, Any]
_VALUE = {"serdes": {"value": "default"}}
_BOTH = {"serdes": {"key": "default", "value": "default"}}
_PROCESSORS = "tests.runtime.fuzzing.processors"
_KEY = {"serdes": {"key": "default"}}


@attrs.frozen
class Handle:
    """`windowed` = its keys are; `versioned` = a table whose store keeps versions."""

    alias: str
    kind: str
    windowed: bool = False
    versioned: bool = False


@attrs.define
class Generator:
    random: random.Random
    steps: list[Options] = attrs.field(factory=list)
    handles: list[Handle] = attrs.field(factory=list)
    topics: list[str] = attrs.field(factory=list)
    _names: int = 0

    def document(self, size: int) -> Options:
        for make in (self._stream, self._table, self._stream, self._table):
            make()
        if self._chance(30):
            self._global_table()
        for _ in range(size):
            self._step()
        for handle in list(self.handles):
            self._sink(handle)
        config = self.random.choice([{}, {"topology.optimization": "all"}])
        return {"application": {"id": "app", "config": config}, "topology": self.steps}

    # sources and sinks

    def _topic(self) -> str:
        self.topics.append(f"t{len(self.topics)}")
        return self.topics[-1]

    def _stream(self) -> None:
        self._emit("stream", {"topic": self._topic()}, "stream")

    def _table(self) -> None:
        versioned = self._chance(25)
        options: Options = {"topic": self._topic()}
        if versioned:
            supplier = {"name": self._name("v"), "kind": "versionedKeyValue", "retention": self._ms(5, 60)}
            options["materialized"] = {"supplier": supplier}
        else:
            options |= self._store(50)
        self._emit("table", options, "table", versioned=versioned)

    def _global_table(self) -> None:
        self._emit("globalTable", {"topic": self._topic(), "materialized": self._name("g")}, "global")

    def _sink(self, handle: Handle) -> None:
        source = handle.alias
        if handle.kind in {"table", "counts"}:
            source = f"{handle.alias}-stream"
            self.steps.append({"toStream": {"from": handle.alias, "as": source}})
        if handle.kind != "global":
            self.steps.append({"to": {"from": source, "topic": f"out-{handle.alias}"}})

    # steps

    def _step(self) -> None:
        handle = self.random.choice([each for each in self.handles if each.kind in {"stream", "table"}])
        if handle.kind == "stream":
            makers = [self._values, self._filter] if handle.windowed else self._of_streams()
        else:
            makers = self._of_tables(handle)
        self.random.choice(makers)(handle)

    def _of_streams(self) -> list[Callable[[Handle], None]]:
        return [
            self._values, self._filter, self._process, self._rekey, self._flat, self._merge,
            self._repartition, self._split, self._to_table, self._aggregate, self._aggregate,
            self._windowed, self._windowed, self._windowed, self._cogroup, self._join_streams,
            self._join_streams, self._join_streams, self._join_table, self._join_table, self._join_global,
        ]  # fmt: skip

    def _of_tables(self, handle: Handle) -> list[Callable[[Handle], None]]:
        if handle.windowed:
            return [self._table_values, self._table_filter, self._transform, self._to_stream, self._suppress]
        return [
            self._table_values, self._transform, self._table_filter, self._to_stream, self._suppress,
            self._regroup, self._regroup, self._join_tables, self._join_tables, self._foreign_key,
            self._foreign_key,
        ]  # fmt: skip

    def _values(self, on: Handle) -> None:
        self._emit("mapValues", {"value": sql.VALUE, **_VALUE}, "stream", on, windowed=on.windowed)

    def _filter(self, on: Handle) -> None:
        call = self.random.choice(["filter", "filterNot"])
        self._emit(call, {"where": sql.WHERE}, "stream", on, windowed=on.windowed)

    def _process(self, on: Handle) -> None:
        if self._chance(50):
            self._emit("process", {"class": f"{_PROCESSORS}:Append", **_BOTH}, "stream", on)
        else:
            self._emit("processValues", {"class": f"{_PROCESSORS}:AppendToValue", **_VALUE}, "stream", on)

    def _rekey(self, on: Handle) -> None:
        if self._chance(50):
            self._emit("selectKey", {"key": sql.KEY, **_KEY}, "stream", on)
        else:
            self._emit("map", {**sql.PAIR, **_BOTH}, "stream", on)

    def _flat(self, on: Handle) -> None:
        if self._chance(50):
            self._emit("flatMap", {"each": sql.PAIRS, **_BOTH}, "stream", on)
        else:
            self._emit("flatMapValues", {"each": sql.VALUES, **_VALUE}, "stream", on)

    def _merge(self, on: Handle) -> None:
        self._emit("merge", {"with": self._plain_stream().alias}, "stream", on)

    def _repartition(self, on: Handle) -> None:
        self._emit("repartition", self._maybe_named(), "stream", on)

    def _split(self, on: Handle) -> None:
        first, rest = Handle(self._name("h"), "stream"), Handle(self._name("h"), "stream")
        branches = [{"where": sql.WHERE, "as": first.alias}]
        self.steps.append({"split": {"from": on.alias, "branches": branches, "default": {"as": rest.alias}}})
        self.handles += [first, rest]

    def _to_table(self, on: Handle) -> None:
        self._emit("toTable", self._store(50), "table", on)

    def _aggregate(self, on: Handle) -> None:
        self._group(on)
        call, options = self._fold(windowed=False)
        self._emit(call, options | self._store(60), "table")

    def _windowed(self, on: Handle) -> None:
        self._group(on)
        window, is_session = self._window()
        on_close = {"emit": "onWindowClose"} if self._chance(25) else {}
        self.steps.append({"windowedBy": {**window, **on_close}})
        call, options = self._fold(windowed=is_session)
        # Kafka Streams' stores in memory forget a window before it is emitted on close; ours do not
        store = self._store(60, in_memory=not on_close)
        self._emit(call, options | store, "table", windowed=True)

    def _group(self, on: Handle, alias: str | None = None) -> None:
        named = {"as": alias} if alias is not None else {}
        if self._chance(50):
            self.steps.append({"groupByKey": {"from": on.alias, **named}})
        else:
            self.steps.append({"groupBy": {"from": on.alias, "key": sql.KEY, **_KEY, **named}})

    def _window(self) -> tuple[Options, bool]:
        grace = {"grace": self._ms(0, 20)}
        kind = self.random.choice(["tumbling", "hopping", "sliding", "session"])
        if kind == "tumbling":
            return {kind: {"size": self._ms(2, 20), **grace}}, False
        if kind == "hopping":
            advance = self.random.randint(1, 8)
            size = advance * self.random.randint(1, 4)
            return {kind: {"size": size * 1000, "advance": advance * 1000, **grace}}, False
        if kind == "sliding":
            return {kind: {"difference": self._ms(1, 15), **grace}}, False
        return {kind: {"gap": self._ms(1, 15), **grace}}, True

    def _fold(self, *, windowed: bool) -> tuple[str, Options]:
        call = self.random.choice(["count", "reduce", "aggregate"])
        if call == "count":
            return call, {}
        if call == "reduce":
            return call, {"add": sql.ADD}
        merge = {"merge": sql.MERGE} if windowed else {}
        return call, {"init": sql.INIT, "add": sql.ADD, **merge}

    def _cogroup(self, on: Handle) -> None:
        one, other = self._name("c"), self._name("c")
        self._group(on, one)
        self._group(self._plain_stream(), other)
        self.steps.append({"cogroup": {"from": one, "add": sql.ADD}})
        self.steps.append({"cogroup": {"with": other, "add": sql.ADD}})
        windowed = self._chance(40)
        is_session = False
        if windowed:
            window, is_session = self._window()
            self.steps.append({"windowedBy": window})
        merge = {"merge": sql.MERGE} if is_session else {}
        store = {"materialized": {"store": self._name("st"), "serdes": {"value": "default"}}}
        self._emit("aggregate", {"init": sql.INIT, **merge, **store}, "table", windowed=windowed)

    # joins

    def _join_streams(self, on: Handle) -> None:
        call = self.random.choice(["join", "leftJoin", "outerJoin"])
        grace = {"grace": self._ms(0, 15)}
        window: Options = {"difference": self._ms(0, 12), **grace}
        if self._chance(40):
            window = {"before": self._ms(0, 12), "after": self._ms(0, 12), **grace}
        other = self._plain_stream()
        options = {"with": other.alias, "window": window, "value": sql.JOIN, **_VALUE}
        self._emit(call, options | self._maybe_named(), "stream", on)

    def _join_table(self, on: Handle) -> None:
        table = self._plain_table()
        grace = {"grace": self._ms(0, 5)} if table.versioned and self._chance(60) else {}
        call = "join" if grace and self._chance(50) else self.random.choice(["join", "leftJoin"])
        options = {"with": table.alias, "value": sql.JOIN, **_VALUE, **grace}
        self._emit(call, options | self._maybe_named(), "stream", on)

    def _join_global(self, on: Handle) -> None:
        tables = [each for each in self.handles if each.kind == "global"]
        if not tables:
            return
        options = {"with": tables[0].alias, "key": sql.KEY, "value": sql.JOIN, **_VALUE}
        self._emit(self.random.choice(["join", "leftJoin"]), options, "stream", on)

    def _join_tables(self, on: Handle) -> None:
        call = self.random.choice(["join", "leftJoin", "outerJoin"])
        options = {"with": self._plain_table().alias, "value": sql.JOIN, **_VALUE}
        self._emit(call, options | self._maybe_named() | self._store(40), "table", on)

    def _foreign_key(self, on: Handle, calls: tuple[str, ...] = ("join", "leftJoin")) -> None:
        options = {"with": self._plain_table().alias, "foreignKey": sql.KEY, "value": sql.JOIN, **_VALUE}
        call = self.random.choice(calls)
        self._emit(call, options | self._maybe_named() | self._store(40), "table", on)

    # tables

    def _table_values(self, on: Handle) -> None:
        store = {} if on.windowed else self._store(40)
        self._emit("mapValues", {"value": sql.VALUE, **_VALUE, **store}, "table", on, windowed=on.windowed)

    def _table_filter(self, on: Handle) -> None:
        call = self.random.choice(["filter", "filterNot"])
        store = {} if on.windowed else self._store(40)
        versioned = on.versioned and not store
        options = {"where": sql.WHERE, **store}
        self._emit(call, options, "table", on, windowed=on.windowed, versioned=versioned)

    def _transform(self, on: Handle) -> None:
        store = {} if on.windowed else self._store(40)
        options = {"class": f"{_PROCESSORS}:Transform", **_VALUE, **store}
        self._emit("transformValues", options, "table", on, windowed=on.windowed)

    def _to_stream(self, on: Handle) -> None:
        self._emit("toStream", {}, "stream", on, windowed=on.windowed)

    def _suppress(self, on: Handle) -> None:
        if on.versioned:
            return
        if on.windowed and self._chance(70):
            options: Options = {"until": "windowCloses"}
        else:
            options = {"until": "timeLimit", "timeLimit": self._ms(0, 20)}
            if self._chance(40):
                options |= {"maxRecords": self.random.randint(1, 4), "whenFull": "emitEarly"}
        self._emit("suppress", options, "table", on, windowed=on.windowed)

    def _regroup(self, on: Handle) -> None:
        self.steps.append({"groupBy": {"from": on.alias, **sql.PAIR, **_BOTH}})
        call, options = self._fold(windowed=False)
        if call != "count":
            options["remove"] = sql.ADD
        self._emit(call, options | self._store(60), "table")

    # the small parts

    def _emit(
        self,
        call: str,
        options: Options,
        kind: str,
        on: Handle | None = None,
        *,
        windowed: bool = False,
        versioned: bool = False,
    ) -> None:
        handle = Handle(self._name("h"), kind, windowed, versioned)
        given = {"from": on.alias} if on is not None else {}
        self.steps.append({call: {**given, **options, "as": handle.alias}})
        self.handles.append(handle)

    def _plain_stream(self) -> Handle:
        return self.random.choice([h for h in self.handles if h.kind == "stream" and not h.windowed])

    def _plain_table(self) -> Handle:
        return self.random.choice([h for h in self.handles if h.kind == "table" and not h.windowed])

    def _store(self, percent: int, *, in_memory: bool = True) -> Options:
        """A store of its own, by name."""
        if not self._chance(percent):
            return {}
        kind = {"type": "in-memory"} if self._chance(30) and in_memory else {}
        return {"materialized": {"store": self._name("st"), **kind}}

    def _maybe_named(self) -> Options:
        return {"name": self._name("n")} if self._chance(40) else {}

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def _ms(self, low: int, high: int) -> int:
        return self.random.randint(low, high) * 1000

    def _chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent


class NoPartnerError(Exception):
    pass


@attrs.define
class TableGenerator(Generator):
    """Tables only, whose last rows do not depend on how many of their changes are seen.

    Left out is what a cache makes wrong in Kafka Streams, too (KAFKA-4609): both sides of a join that change
    within a batch meet each other's new row only, so that a row which both lost stays joined, and the old
    value that goes on was never seen. So no row is deleted, nothing is counted behind a join, and no table
    meets what is made of itself. A group that came and went within a batch is never seen.
    """

    made_of: dict[str, frozenset[str]] = attrs.field(factory=dict)
    current: str = ""

    def document(self, size: int) -> Options:
        for _ in range(3):
            self._plain_source()
        for _ in range(size):
            table = self.random.choice([each for each in self.handles if each.kind == "table"])
            self.current = table.alias
            with suppress(NoPartnerError):
                self.random.choice(self._convergent())(table)
        for handle in list(self.handles):
            self._sink(handle)
        return {"application": {"id": "app"}, "topology": self.steps}

    def _emit(
        self,
        call: str,
        options: Options,
        kind: str,
        on: Handle | None = None,
        *,
        windowed: bool = False,
        versioned: bool = False,
    ) -> None:
        super()._emit(call, options, kind, on, windowed=windowed, versioned=versioned)
        alias = self.handles[-1].alias
        parents = [on.alias if on is not None else "", options.get("with", "")]
        known = [self.made_of[parent] for parent in parents if parent in self.made_of]
        self.made_of[alias] = frozenset().union(*known) or frozenset({alias})

    def _plain_source(self) -> None:
        if self._chance(60):
            self._emit("table", {"topic": self._topic(), **self._store(50)}, "table")
            return
        self._stream()
        stream = self.handles[-1]
        self.random.choice([self._to_table, self._aggregate])(stream)

    def _plain_table(self) -> Handle:
        own = self.made_of[self.current]
        others = [h for h in self.handles if h.kind == "table" and own.isdisjoint(self.made_of[h.alias])]
        if not others:
            raise NoPartnerError
        return self.random.choice(others)

    def _convergent(self) -> list[Callable[[Handle], None]]:
        return [
            self._table_values, self._transform, self._join_tables, self._join_tables,
            self._left_foreign_key, self._left_foreign_key, self._count_groups,
        ]  # fmt: skip

    def _left_foreign_key(self, on: Handle) -> None:
        """An inner one does not ask again when a row changes before its answer comes, so that one is lost."""
        self._foreign_key(on, ("leftJoin",))

    def _count_groups(self, on: Handle) -> None:
        if len(self.made_of[on.alias]) > 1:
            raise NoPartnerError
        self.steps.append({"groupBy": {"from": on.alias, **sql.PAIR, **_BOTH}})
        self._emit("count", self._store(60), "counts")


def records(chance: random.Random, topics: list[str], count: int) -> list[Options]:
    """Late ones, out of order ones, nulls and deletions among them."""
    time = 100_000
    made = []
    for number in range(count):
        time += chance.choice([0, 1, 500, 1000, 1000, 3000, 7000, 25_000])
        back = chance.choice([0, 0, 0, 0, 1000, 2000, 6000, 15_000, 60_000])
        key = chance.choice(["a", "b", "c", "a", "b", None])
        value = None if chance.randrange(6) == 0 else f"{chance.choice('abcd')}:{number}"
        made.append(
            {
                "topic": chance.choice(topics),
                "key": key,
                "value": value,
                "timestamp": max(0, time - back),
            }
        )
    return made
