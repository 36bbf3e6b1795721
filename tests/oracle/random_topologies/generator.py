"""Random topology documents over the whole DSL and Processor API, typed so that Kafka Streams builds most.

All choices are drawn with `Choices`; 0 is always the simplest choice, because hypothesis shrinks towards it.
"""

from typing import Any

import attrs

from tests.oracle.random_topologies.sources import Handle, SourceGenerator, is_versioned
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


@attrs.define
class Generator(SourceGenerator):
    """Generates one document, call by call."""

    only_tables: bool = False
    """Only joins of tables: stores are read through many unmaterialized results."""
    only_repartitions: bool = False
    """Mostly calls that Kafka Streams moves repartition topics over when it merges them."""

    def document(self, size: int) -> Options:
        self._source()
        for _ in range(size):
            self._step()
        if self.choices.chance(12):
            self._processor_api()
        application: Options = {"id": "app"}
        if config := self._config():
            application["config"] = config
        return {"application": application, "topology": self.steps}

    def partitions(self, missing_percent: int = 0) -> dict[str, int]:
        base = 1 + self.choices.number(4)
        varied = self.choices.chance(40)
        counts = {
            topic: 1 + self.choices.number(7) if varied else base
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

    def _only_tables_step(self) -> None:
        tables = self._of("table")
        if len(tables) < 2 or self.choices.chance(35):
            self._emit("table", {"topic": self._topic()}, "table")
            return
        table, other = self.choices.pick(tables[:4]), self.choices.pick(tables)
        operator = self.choices.pick(("join", "leftJoin", "outerJoin", "filter", "mapValues"))
        partner = {"with": other.alias} if operator.endswith(("join", "Join")) else {}
        self._emit(operator, partner, "table", table)

    def _only_repartitions_step(self, streams: list[Handle]) -> None:
        stream = self.choices.pick(streams[:3])
        operator = self.choices.pick(
            (
                "selectKey",
                "mapValues",
                "groupByKey",
                "processValues",
                "process",
                "merge",
                "filter",
                "map",
                "groupBy",
            )
        )
        if operator.startswith("group"):
            self._emit(operator, self.name(), "grouped", stream)
            self._emit("count", self.name() | self.materialized(), "table", self.handles[-1])
        else:
            partner = {"with": self.choices.pick(streams).alias} if operator == "merge" else {}
            self._emit(operator, partner | self.name(20), "stream", stream)

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

    def _end(self, stream: Handle) -> None:
        operator = self.choices.pick(("foreach", "print", "to", "to"))
        if operator == "to" and self.choices.chance(50) and self.topics:
            # a topic that the application reads itself
            self._emit("to", {"topic": self.choices.pick(self.topics)}, None, stream)
        elif operator == "to":
            self._emit("to", {"extractor": "com.example.Router@1f, (odd)", **self.name(20)}, None, stream)
        else:
            self._emit(operator, self.name(20), None, stream)

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
        return branch

    def _join_stream(self, stream: Handle) -> None:
        partners = self._of("stream", "table", "global")
        other = self.choices.pick(partners)
        if other.kind == "stream":
            self._join_streams(stream, other)
        elif other.kind == "table":
            graces = (0, 1000, 600_000) if other.versioned or (self.bad and self.choices.chance(20)) else ()
            grace = {"grace": self.choices.pick(graces)} if graces and self.choices.chance(50) else {}
            if grace and not self.bad and grace["grace"] != 0 and not other.versioned:
                grace = {}
            self._emit(self._inner_or_left(), {"with": other.alias, **self.name(), **grace}, "stream", stream)
        else:
            self._emit(self._inner_or_left(), {"with": other.alias, **self.name()}, "stream", stream)

    def _inner_or_left(self) -> str:
        return self.choices.pick(("join", "leftJoin"))

    def _join_streams(self, stream: Handle, other: Handle) -> None:
        window: Options = self.choices.pick(
            (
                {"difference": 5000},
                {"difference": "10s", "grace": "3s"},
                {"before": 2000, "after": 7000, "grace": 1},
                {"difference": "10s", "grace": "3s", "eager": True},
            )
        )
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
        kept = size + milliseconds(window.get("grace", 0))
        for side in ("thisStore", "otherStore"):
            if self.choices.chance(12):
                options[side] = {"name": self.any_name("js"), "retention": kept, "windowSize": size}
                if self.bad and self.choices.chance(30):
                    options[side]["retention"] += 1
        operator = self.choices.pick(("join", "leftJoin", "outerJoin"))
        self._emit(operator, options | self.logging(15), "stream", stream)

    def _on_table(self, table: Handle) -> None:
        form = self.choices.number(100)
        if form < 18:
            options = self.name() | self.materialized()
            traits: Options = {"window": table.window, "versioned": is_versioned(options)}
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
        for percent, key, values in _CONFIGS:
            if self.choices.chance(percent):
                config[key] = self.choices.pick(values)
        if self.bad and self.choices.chance(5):
            wrong = ("some", "all,none", "all, merge.repartition.topics")
            config["topology.optimization"] = self.choices.pick(wrong)
        return config
