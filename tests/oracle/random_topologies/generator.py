"""Random topology documents over the whole DSL and Processor API, typed so that Kafka Streams builds most.

All choices are drawn with `Choices`; 0 is always the simplest choice, because hypothesis shrinks towards it.
"""

from typing import Any

import attrs

from tests.oracle.random_topologies.focused import FocusedGenerator
from tests.oracle.random_topologies.sources import Handle, is_versioned
from tests.oracle.random_topologies.stores import Options, milliseconds

_STATELESS = ("filter", "filterNot", "map", "mapValues", "flatMap", "flatMapValues", "selectKey", "peek")
_OPTIMIZATIONS = (
    None,
    "all",
    "none",
    "merge.repartition.topics",
    "reuse.ktable.source.topics",
    "single.store.self.join",
    "merge.repartition.topics,single.store.self.join",
    "reuse.ktable.source.topics, merge.repartition.topics",
)
_RARE_OPTIMIZATIONS = (
    "reuse.ktable.source.topics,single.store.self.join",
    "merge.repartition.topics,single.store.self.join , reuse.ktable.source.topics",
)
_WRONG_OPTIMIZATIONS = (
    "some",
    "all,none",
    "all, merge.repartition.topics",
    "ALL",
    " all",
    "",
    ",",
    "merge.repartition.topics,",
    ",single.store.self.join",
    "merge.repartition.topics,merge.repartition.topics",
)


_EAGER_WINDOWS: tuple[Options, ...] = (
    {"difference": "1h", "eager": True},
    {"difference": "13h", "eager": True},
    {"before": 0, "after": 3000, "grace": 0, "eager": True},
)
_CONFIGS: tuple[tuple[int, str, tuple[Any, ...]], ...] = (
    (10, "topic.retention.ms", (99_000,)),
    (10, "topic.segment.bytes", (1_048_576,)),
    (10, "windowstore.changelog.additional.retention.ms", (0, 1, 3_600_000)),
    (5, "default.dsl.store", ("in_memory",)),
    (4, "ensure.explicit.internal.resource.naming", (True,)),
    (5, "__enable.process.processValue.fix__", (True,)),
    (3, "replication.factor", (3,)),
    (3, "__internal.override.topic.prefix__", ("other",)),
    (3, "dsl.store.format", ("HEADERS",)),
    (3, "upgrade.from", ("2.3", "3.6", "3.9", "4.1", "4.2")),
    (3, "processing.guarantee", ("exactly_once_v2", "exactly_once")),
)
_RARE_CONFIGS: tuple[tuple[int, str, tuple[Any, ...]], ...] = (
    (5, "topic.cleanup.policy", ("delete", "compact", "compact,delete")),
    (3, "topic.min.compaction.lag.ms", (7,)),
    (3, "topic.message.timestamp.type", ("LogAppendTime",)),
    (2, "windowstore.changelog.additional.retention.ms", (2**63 - 1,)),
)


@attrs.define
class Generator(FocusedGenerator):
    """Generates one document, call by call."""

    def document(self, size: int) -> Options:
        self._source()
        for _ in range(size):
            self._step()
        if self.choices.chance(12):
            self._processor_api()
        application: Options = {"id": self._application_id()}
        if config := self._config():
            application["config"] = config
        return {"application": application, "topology": self.steps}

    def _application_id(self) -> str:
        """Return an id: the order in which Kafka Streams counts partitions depends on its hash code."""
        return f"app-{self.choices.number(1_000_000)}" if self.rarely(50) else "app"

    def partitions(self, missing_percent: int = 0) -> dict[str, int]:
        base = 1 + self.choices.number(4)
        varied = self.choices.chance(40)
        counts = {
            topic: 1 + self.choices.number(200 if self.rarely(5) else 7) if varied else base
            for topic in [*self.topics, *self.global_topics]
            if topic in self.global_topics or not self.choices.chance(missing_percent)
        }
        return counts | {"unread": 3}

    # --- one call on an existing handle

    def _step(self) -> None:
        if self.only_tables and self.choices.chance(90):
            self._only_tables_step()
            return
        if not self.handles or self.choices.chance(22):
            self._source()
            return
        streams = self._of("stream")
        if self.only_counts and streams and self.choices.chance(85):
            self._only_counts_step(streams)
            return
        if self.only_repartitions and streams and self.choices.chance(80):
            self._only_repartitions_step(streams)
            return
        pending = self._of("grouped", "groupedTable", "windowed", "cogrouped", "windowedCogrouped")
        if pending and self.choices.chance(65):
            self._aggregate(self.choices.pick(pending))
            return
        usable = self._of("stream", "table")
        if not usable:
            self._source()
            return
        recent = usable[:3] if self.choices.chance(60) else usable
        receiver = self.choices.pick(recent)
        (self._on_stream if receiver.kind == "stream" else self._on_table)(receiver)

    def _on_stream(self, stream: Handle) -> None:
        form = self.choices.number(100)
        if form < 26:
            self._emit(self.choices.pick(_STATELESS), self.name(), "stream", stream)
        elif form < 32:
            self._emit("to", {"topic": self.fresh("out"), **self.name(20)}, None, stream)
        elif form < 36:
            self._end(stream)
        elif form < 52:
            self._group_stream(stream)
        elif form < 58:
            counted = {"partitions": 1 + self.choices.number(6)} if self.choices.chance(35) else {}
            self._emit("repartition", self.name(50) | counted, "stream", stream)
        elif form < 64:
            self._emit("toTable", self.name() | self.materialized(), "table", stream)
        elif form < 69:
            other = self.choices.pick(self._of("stream"))
            self._emit("merge", {"with": other.alias, **self.name()}, "stream", stream)
        elif form < 74:
            self._split(stream)
        elif form < 79:
            operator = self.choices.pick(("process", "processValues"))
            self._emit(operator, self.connected() | self.name(), "stream", stream)
        else:
            self._join_stream(stream)

    def _group_stream(self, stream: Handle) -> None:
        self._emit(self.choices.pick(("groupBy", "groupByKey")), self.name(35), "grouped", stream)

    def _split(self, stream: Handle) -> None:
        branches = [self._branch() for _ in range(1 + self.choices.number(3))]
        options: Options = {**self.name(40), "branches": branches}
        form = self.choices.number(3)
        if form:
            options["default"] = True if form == 1 else self._branch()
        self._emit("split", options, None, stream)
        self.handles += [
            Handle(b["as"], "stream") for b in [*branches, options.get("default")] if isinstance(b, dict)
        ]

    def _branch(self) -> Options:
        branch: Options = {**self.name(40), "as": f"b{self.fresh('')}"}
        if self.choices.chance(25):
            branch["then"] = [{self.choices.pick(_STATELESS): self.name() or None}]
            if self.choices.chance(30):
                branch["then"].append({"repartition": self.name(50) or None})
            if self.rarely(40):
                branch["then"] += self._in_branch()
        return branch

    def _in_branch(self) -> list[Options]:
        """Return calls in a branch that end with a stream."""
        form = self.choices.number(5)
        if form == 0:
            group = {self.choices.pick(("groupByKey", "groupBy")): self.name(35) or None}
            count = {"count": self.name() | self.materialized() or None}
            return [group, count, {"toStream": self.name() or None}]
        if form == 1:
            return [{"toTable": self.name() | self.materialized() or None}, {"toStream": self.name() or None}]
        if form == 2:
            inner = f"b{self.fresh('')}"
            split = {**self.name(40), "branches": [{**self.name(40), "as": inner}]}
            return [{"split": split}, {"filter": {"from": inner, **self.name()}}]
        other = self.choices.pick(self._of("stream", "table"))
        if form == 3 and other.kind == "stream":
            return [{"merge": {"with": other.alias, **self.name()}}]
        window = {"window": {"difference": 5000}} if other.kind == "stream" else {}
        return [{self._inner_or_left(): {"with": other.alias, **window, **self.name()}}]

    def _join_stream(self, stream: Handle) -> None:
        partners = self._of("stream", "table", "global")
        other = self.choices.pick(partners)
        if other.kind == "stream":
            self._join_streams(stream, other)
        elif other.kind == "table":
            may_wait = other.versioned or (self.bad and self.choices.chance(20)) or self.rarely(3)
            graces = (0, 1000, 600_000) if may_wait else ()
            grace = {"grace": self.choices.pick(graces)} if graces and self.choices.chance(50) else {}
            self._emit(self._inner_or_left(), {"with": other.alias, **self.name(), **grace}, "stream", stream)
        else:
            self._emit(self._inner_or_left(), {"with": other.alias, **self.name()}, "stream", stream)

    def _join_streams(self, stream: Handle, other: Handle) -> None:
        window: Options = self.choices.pick(
            (
                {"difference": 5000},
                {"difference": "10s", "grace": "3s"},
                {"before": 2000, "after": 7000, "grace": 1},
                {"difference": "10s", "grace": "3s", "eager": True},
            )
        )
        if self.rarely(10):
            window = self.choices.pick(_EAGER_WINDOWS)
        if self.choices.chance(5):
            window = {
                "before": -1000,
                "after": 10_000 if not self.bad else self.choices.pick((10_000, 500)),
                "grace": 1,
            }
        options: Options = {"with": other.alias, "window": window, **self.name()}
        if self.choices.chance(25):
            options["storeName"] = self.any_name("j")
        difference = 2 * milliseconds(window.get("difference", 0))
        size = difference or window["before"] + window["after"]
        late = max(86_400_000 - difference, 0) if "eager" in window else 0
        kept = size + milliseconds(window.get("grace", late))
        for side in ("thisStore", "otherStore"):
            if self.choices.chance(12):
                options[side] = {"name": self.any_name("js"), "retention": kept, "windowSize": size}
                if self.rarely(25):
                    options[side]["type"] = "in-memory"
                if self.bad and self.choices.chance(30):
                    options[side]["retention"] += 1
        operator = self.choices.pick(("join", "leftJoin", "outerJoin"))
        self._emit(operator, options | self.logging(15), "stream", stream)

    def _on_table(self, table: Handle) -> None:
        form = self.choices.number(100)
        if form < 18:
            options = self.name() | self.materialized()
            kept = self.rare and table.versioned and "materialized" not in options
            traits: Options = {"window": table.window, "versioned": kept or is_versioned(options)}
            self._emit(
                self.choices.pick(("filter", "filterNot", "mapValues")), options, "table", table, **traits
            )
        elif form < 24:
            options = self.name() | self.materialized() | self.connected()
            self._emit("transformValues", options, "table", table, window=table.window)
        elif form < 46:
            keyed = {"selectKey": True} if self.choices.chance(20) else {}
            self._emit("toStream", self.name() | keyed, "stream", table)
        elif form < 56:
            self._suppress(table)
        elif form < 72:
            self._emit("groupBy", self.name(40), "groupedTable", table)
        else:
            self._join_tables(table)

    def _suppress(self, table: Handle) -> None:
        options: Options = {"until": "timeLimit", "timeLimit": self.choices.pick(("5s", "5s", "-1s"))}
        if (table.window and "unlimited" not in table.window) or (self.bad and self.choices.chance(30)):
            options = {"until": "windowCloses"} if self.choices.chance(70) else options
        if table.versioned and not self.bad:
            return
        if self.choices.chance(30):
            options[self.choices.pick(("maxRecords", "maxBytes"))] = 100
            options["whenFull"] = "shutDown"
        if options["until"] == "timeLimit" and self.choices.chance(30):
            options["whenFull"] = self.choices.pick(("emitEarly", "shutDown"))
        self._emit("suppress", options | self.name() | self.logging(), "table", table, window=table.window)

    def _join_tables(self, table: Handle) -> None:
        partners = self._of("table")
        other = self.choices.pick(partners)
        options: Options = {"with": other.alias, **self.name(), **self.materialized()}
        traits: Options = {"versioned": is_versioned(options)}
        if self.choices.chance(35):
            self._emit(self._inner_or_left(), options | {"foreignKey": True}, "table", table, **traits)
        else:
            self._emit(
                self.choices.pick(("join", "leftJoin", "outerJoin")), options, "table", table, **traits
            )

    # --- aggregations

    def _aggregate(self, grouped: Handle) -> None:
        if grouped.kind == "grouped" and self.choices.chance(35):
            if self.choices.chance(70):
                self._window(grouped, "windowed")
            else:
                self._emit("cogroup", {}, "cogrouped", grouped)
            return
        if grouped.kind == "cogrouped" and self.choices.chance(50):
            partners = self._of("grouped")
            if partners and self.choices.chance(60):
                self._emit("cogroup", {"with": self.choices.pick(partners).alias}, "cogrouped", grouped)
            else:
                self._window(grouped, "windowedCogrouped")
            return
        kind = "keyValue"
        if grouped.window:
            kind = next((k for k in ("session", "unlimited") if k in grouped.window), "window")
        cogrouped = grouped.kind in {"cogrouped", "windowedCogrouped"}
        operator = "aggregate" if cogrouped else self.choices.pick(("count", "reduce", "aggregate"))
        options = self.name() | self.materialized(kind, grouped.window)
        self._emit(
            operator, options, "table", grouped, window=grouped.window, versioned=is_versioned(options)
        )

    def _window(self, grouped: Handle, kind: str) -> None:
        window: Options = self.choices.pick(
            (
                {"tumbling": {"size": 10_000}},
                {"tumbling": {"size": "1h", "grace": "5m"}},
                {"hopping": {"size": 60_000, "advance": 20_000, "grace": 1}},
                {"sliding": {"difference": 30_000, "grace": 2000}},
                {"sliding": {"difference": 1000}},
                {"session": {"gap": 5000, "grace": 1000}},
                {"session": {"gap": "1m"}},
                {"unlimited": None},
                {"unlimited": {"start": 1000}},
            )
        )
        emit = "unlimited" not in window or self.bad
        closing = {"emit": "onWindowClose"} if emit and kind == "windowed" and self.choices.chance(15) else {}
        self._emit("windowedBy", window | closing, kind, grouped, window=window)

    def _config(self) -> Options:
        config: Options = {}
        optimization = "all" if self.only_repartitions else self.choices.pick(_OPTIMIZATIONS)
        if optimization:
            config["topology.optimization"] = optimization
        if self.rarely(10):
            config["topology.optimization"] = self.choices.pick(_RARE_OPTIMIZATIONS)
        for percent, key, values in (*_CONFIGS, *(_RARE_CONFIGS if self.rare else ())):
            if self.choices.chance(percent):
                config[key] = self.choices.pick(values)
        if self.bad and self.choices.chance(5):
            config["topology.optimization"] = self.choices.pick(
                _WRONG_OPTIMIZATIONS if self.rare else _WRONG_OPTIMIZATIONS[:3]
            )
        return config
