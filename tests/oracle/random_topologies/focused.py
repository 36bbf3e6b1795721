"""Random topologies with mostly one kind of calls."""

import attrs

from tests.oracle.random_topologies.sources import Handle, SourceGenerator


@attrs.define
class FocusedGenerator(SourceGenerator):
    only_tables: bool = False
    """Only joins of tables: stores are read through many unmaterialized results."""
    only_repartitions: bool = False
    """Mostly calls that Kafka Streams moves repartition topics over when it merges them."""
    only_counts: bool = False
    """Mostly repartition topics whose partition counts depend on each other."""

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

    def _only_counts_step(self, streams: list[Handle]) -> None:
        stream, other = self.choices.pick(streams), self.choices.pick(streams)
        form = self.choices.number(20)
        if form < 4:
            counted = {"partitions": 1 + self.choices.number(6)} if self.choices.chance(15) else {}
            self._emit("repartition", self.name(50) | counted, "stream", stream)
        elif form < 10:
            self._emit("groupBy", self.name(35), "grouped", stream)
            self._emit("count", self.name() | self.materialized(), "table", self.handles[-1])
            self._emit("toStream", {}, "stream", self.handles[-1])
        elif form < 15:
            self._emit("merge", {"with": other.alias}, "stream", stream)
            if self.choices.chance(70):
                self._emit("repartition", self.name(20), "stream", self.handles[-1])
        elif form < 17:
            self._emit("selectKey", {}, "stream", stream)
        elif form == 17:
            self._emit("toTable", {}, "table", stream)
            options = {"with": self.handles[-1].alias}
            self._emit(self._inner_or_left(), options, "stream", other)
        elif form == 18:
            self._emit("toTable", {}, "table", stream)
            self._emit("toTable", {}, "table", other)
            foreign, own = self.handles[-2:]
            self._emit("join", {"with": foreign.alias, "foreignKey": True}, "table", own)
            self._emit("toStream", {}, "stream", self.handles[-1])
        else:
            self._end(stream)

    def _end(self, stream: Handle) -> None:
        operator = self.choices.pick(("foreach", "print", "to", "to"))
        if operator == "to" and self.choices.chance(50) and self.topics:
            # a topic that the application reads itself
            self._emit("to", {"topic": self.choices.pick(self.topics)}, None, stream)
        elif operator == "to":
            self._emit("to", {"extractor": "com.example.Router@1f, (odd)", **self.name(20)}, None, stream)
        else:
            self._emit(operator, self.name(20), None, stream)

    def _inner_or_left(self) -> str:
        return self.choices.pick(("join", "leftJoin"))
