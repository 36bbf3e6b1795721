"""Random topologies to run with data, with the functions of the Java helper."""

from collections.abc import Callable, Collection
from contextlib import suppress
from random import Random
from typing import Any

import attrs

from tests.runtime.engine.fuzzing import aggregations, joins, processor_api, sources, streams, tables
from tests.runtime.engine.fuzzing.draft import Draft, Handle, NoPartnerError, Options
from tests.runtime.engine.fuzzing.functions import TEXT, TOTAL, Functions, ValueFormat, functions_of

Make = Callable[[Any, Handle], None]
_ON_STREAMS: tuple[Make, ...] = (
    streams.values, streams.select, streams.process, streams.process, streams.rekey, streams.flat,
    streams.merge, streams.repartition, streams.split, streams.to_table,
    aggregations.aggregate, aggregations.aggregate, aggregations.windowed, aggregations.windowed,
    aggregations.windowed, aggregations.cogroup,
    joins.streams, joins.streams, joins.streams, joins.with_table, joins.with_table, joins.with_global,
)  # fmt: skip
_ON_WINDOWED_STREAMS: tuple[Make, ...] = (streams.values, streams.select, streams.rekey)
_ON_TABLES: tuple[Make, ...] = (
    tables.values, streams.transform, tables.select, tables.to_stream, tables.suppress,
    aggregations.regroup, aggregations.regroup, joins.tables, joins.tables, joins.foreign_key,
    joins.foreign_key,
)  # fmt: skip
_ON_WINDOWED_TABLES: tuple[Make, ...] = (
    tables.values, tables.select, streams.transform, tables.to_stream, tables.suppress, tables.suppress,
    aggregations.regroup, joins.windowed_tables,
)  # fmt: skip
_IN_ONE_TASK: tuple[Make, ...] = (
    streams.values, streams.select, streams.flat_values, streams.split, streams.merge, streams.process,
    streams.report, streams.report,
)  # fmt: skip
_WITH_PROCESSORS = frozenset({streams.process, streams.transform, streams.report})
_CONVERGENT: tuple[Make, ...] = (
    tables.values, streams.forgetful_transform, joins.tables, joins.tables, joins.left_foreign_key,
    joins.left_foreign_key,
)  # fmt: skip
_OPTIMIZATIONS = (
    "none",
    "none",
    "none",
    "all",
    "all",
    "reuse.ktable.source.topics",
    "merge.repartition.topics",
)


@attrs.define
class Generator(Draft):
    has_rare_calls: bool = False
    """Generate calls on a `Topology`, and topics that are written and read, too."""
    one_task: bool = False
    """Generate one sub-topology: the test driver has one stream time for all."""
    form: ValueFormat = TEXT
    """The default format of values. Processors have text: other formats have none of them."""

    @classmethod
    def of_format(cls, random: Random, form: ValueFormat) -> "Generator":
        functions = functions_of(form, partial=True)
        return cls(random, functions, has_counts=form.name == "long", has_rare_calls=True, form=form)

    def document(self, size: int) -> Options:
        has_processors = self.form is TEXT
        self.one_task = self.chance(10) and has_processors
        self.survives = self.chance(25)
        for make in (sources.stream, sources.table, sources.stream, sources.table)[
            : 1 if self.one_task else 4
        ]:
            make(self)
        while self.chance(25):
            sources.global_table(self)
        if self.chance(15) and has_processors:
            sources.global_store(self)
        for _ in range(size):
            self._step()
            if self.has_rare_calls and not self.one_task and self.chance(6):
                with suppress(NoPartnerError):
                    streams.through_a_topic(self, self.partner("stream"))
        for handle in list(self.handles):
            sources.sink(self, handle)
        if self.chance(10):
            sources.chosen_sink(self)
        if self.has_rare_calls and has_processors and not self.one_task and self.chance(25):
            processor_api.topology(self)
        config = {"topology.optimization": self.random.choice(_OPTIMIZATIONS), **self.handlers()}
        if self.has_rare_calls:
            config |= self._rare_config()
        if self.form is not TEXT:
            config["default.value.serde"] = self.form.name
        return {"application": {"id": "app", "config": config}, "topology": self.steps}

    def _rare_config(self) -> Options:
        upgrade = {"upgrade.from": self.random.choice(["3.3", "3.4"])} if self.chance(15) else {}
        # in Kafka Streams, windows of in-memory stores can expire before they are emitted on close
        emits_on_close = any("emit" in options for step in self.steps for options in step.values())
        in_memory = self.chance(15) and not emits_on_close
        return upgrade | ({"default.dsl.store": "in_memory"} if in_memory else {})

    def _step(self) -> None:
        handle = self.random.choice([each for each in self.handles if each.kind in {"stream", "table"}])
        if self.one_task:
            makers = _IN_ONE_TASK
        elif handle.kind == "stream":
            makers = _ON_WINDOWED_STREAMS if handle.windowed else _ON_STREAMS
        else:
            makers = _ON_WINDOWED_TABLES if handle.windowed else _ON_TABLES
        make = self.random.choice(makers)
        if self.form is not TEXT and make in _WITH_PROCESSORS:
            return
        with suppress(NoPartnerError):
            make(self, handle)


@attrs.define
class TableGenerator(Draft):
    """Generates tables whose final rows do not depend on the number of changes that are forwarded.

    It excludes topologies for which caches give wrong results in Kafka Streams, too (KAFKA-4609): if both
    sides of a join change within a batch, they are joined with each other's new row only. So a row that both
    sides delete remains joined, and the forwarded old value was never forwarded before. Therefore no row is
    deleted, results of joins are not counted, and no table is joined with a table derived from it. A group
    created and deleted within a batch is not forwarded. An inner foreign-key join does not subscribe again if
    a row changes before the response arrives, so that response is lost.
    """

    functions: Functions = TOTAL
    made_of: dict[str, frozenset[str]] = attrs.field(factory=dict)

    def document(self, size: int) -> Options:
        for _ in range(3):
            self._source()
        for _ in range(size):
            table = self.random.choice([each for each in self.handles if each.kind == "table"])
            with suppress(NoPartnerError):
                self.random.choice((*_CONVERGENT, _count_groups))(self, table)
        for handle in list(self.handles):
            sources.sink(self, handle)
        return {"application": {"id": "app"}, "topology": self.steps}

    def emitted(self, alias: str, parents: Collection[str]) -> None:
        known = [self.made_of[parent] for parent in parents if parent in self.made_of]
        self.made_of[alias] = frozenset().union(*known) or frozenset({alias})

    def table_to_join(self, left: Handle) -> Handle:
        own = self.made_of[left.alias]
        others = [h for h in self.handles if h.kind == "table" and own.isdisjoint(self.made_of[h.alias])]
        if not others:
            raise NoPartnerError
        return self.random.choice(others)

    def key_value_store(self, percent: int) -> tuple[Options, bool]:
        """Return no versioned store: they are never cached."""
        return self.store(percent), False

    def _source(self) -> None:
        if self.chance(60):
            sources.table(self)
            return
        self.emit("stream", {"topic": self.topic()}, "stream")
        self.random.choice([streams.to_table, aggregations.aggregate])(self, self.handles[-1])


def _count_groups(draft: TableGenerator, on: Handle) -> None:
    if len(draft.made_of[on.alias]) > 1:
        raise NoPartnerError
    aggregations.group_table(draft, on)
    draft.emit("count", draft.store(60), "counts")
