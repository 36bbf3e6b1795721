"""Make the calls of a document, one after another: calls of the DSL first, then calls on a `Topology`.

The handles that calls of the DSL return are kept. Calls on a `Topology` come last, whatever their order.
`divide_calls` says which these are.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls import CALLS, CALLS_WITH_OTHER, STARTS
from headwater.compiler.dsl.calls.streams import split
from headwater.compiler.dsl.formats import with_serdes
from headwater.compiler.dsl.handles import (
    CALLS_ON,
    KIND,
    UNCHECKED_NAMES,
    Handle,
    InvalidHandle,
    Nothing,
    Stream,
    call_name,
)
from headwater.compiler.dsl.messages import global_store_logged, unsupported_call
from headwater.compiler.dsl.stores import Store, builder_problems, built_store
from headwater.compiler.dsl.topology import TopologyUnderConstruction
from headwater.model import operators as op
from headwater.model import processor_api
from headwater.model.behaviors import RunProcessor
from headwater.model.formats import RecordFormat, SinkSettings, SourceSettings
from headwater.model.operators import Operator, Step
from headwater.model.problems import Location, Problem
from headwater.model.stores import Materialized, StoreBuilder


class Document:
    """Makes the calls of steps; a step without `from` is a call on the result of the preceding step."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._handles: dict[str, Handle] = {}

    def run(self, steps: Sequence[Step], current: Handle | None = None) -> Handle | None:
        """Make the calls and return the result of the last one, `current` if there is none."""
        for step in steps:
            self._builder.at = step.at
            current = self._call(step, current)
            if step.alias is not None:
                self._remember_alias(step.alias, current)
        return current

    def _call(self, step: Step, current: Handle | None) -> Handle:
        operator = step.operator
        if is_processor_api(operator):
            return self._builder.reject(_call_in_a_branch(step))
        self._check_names(operator)
        start = STARTS.get(type(operator))
        if start is not None:
            return start(self._builder, operator)
        on = self._input_handle(step, current)
        if not isinstance(on, InvalidHandle) and call_name(operator) not in CALLS_ON[type(on)]:
            on = self._builder.reject(_call_does_not_fit(step, on))
        other = self._other_handle(operator)
        if isinstance(on, InvalidHandle) or isinstance(other, InvalidHandle):
            self._refuse_branches(operator)
            return InvalidHandle()
        if isinstance(operator, op.Split) and isinstance(on, Stream):
            return split(self._builder, on, operator, self._call_branch)
        key = type(operator), type(on)
        if key in CALLS:
            return CALLS[key](self._builder, on, operator)
        return CALLS_WITH_OTHER[key](self._builder, on, operator, other)

    def _call_branch(self, branch: op.Branch, stream: Stream) -> None:
        at = self._builder.at
        result = self.run(branch.then, stream)
        self._builder.at = at
        if branch.alias is not None:
            self._remember_alias(branch.alias, result)

    def _refuse_branches(self, operator: Operator) -> None:
        """Register the aliases of an invalid split as invalid handles."""
        if isinstance(operator, op.Split):
            for branch in (*operator.branches, *([operator.default] if operator.default is not None else [])):
                for step in branch.then:
                    self._refuse_branches(step.operator)
                    if step.alias is not None:
                        self._handles.setdefault(step.alias, InvalidHandle())
                if branch.alias is not None:
                    self._handles.setdefault(branch.alias, InvalidHandle())

    def _check_names(self, operator: Operator) -> None:
        if not isinstance(operator, UNCHECKED_NAMES):
            self._builder.check_name(getattr(operator, "name", None), "name")
        materialized = getattr(operator, "materialized", None)
        if isinstance(materialized, Materialized) and materialized.supplier is None:
            self._builder.check_name(materialized.store, "store name")

    # handles

    def _remember_alias(self, alias: str, handle: Handle | None) -> None:
        if alias in self._handles:
            self._builder.reject(_alias_taken(alias))
            return
        self._handles[alias] = handle if handle is not None else Nothing("split")

    def _input_handle(self, step: Step, current: Handle | None) -> Handle:
        handle = current if step.input is None else self._named_handle(step.input)
        if handle is None:
            return self._builder.reject(_no_input(step))
        if isinstance(handle, Nothing):
            return self._builder.reject(_follows_nothing(step, handle.call))
        return handle

    def _other_handle(self, operator: Operator) -> Handle | None:
        name = getattr(operator, "other", None)
        return self._named_handle(name) if name is not None else None

    def _named_handle(self, name: str) -> Handle:
        if name in self._handles:
            return self._handles[name]
        return self._builder.reject(_alias_unknown(name, self._handles))


_NO_CALLS = {
    "global table": "Name it in `with` of a stream's join.",
    "split": "Give the branches `as`, and name one in `from`.",
}


def _no_input(step: Step) -> Problem:
    return unsupported_call(
        f"`{call_name(step.operator)}` has no input: no call precedes it.",
        expected="`from: <alias>`, or a preceding call",
        found="the first step",
        at=step.at,
        fix="Start with `stream` or `table`.",
    )


def _follows_nothing(step: Step, call: str) -> Problem:
    return unsupported_call(
        f"`{call_name(step.operator)}` follows `{call}`, which returns nothing.",
        expected="`from: <alias>` of an earlier result",
        found=f"the result of `{call}`",
        at=step.at,
        fix="Set its input: `from: <alias>`.",
    )


def _alias_taken(alias: str) -> Problem:
    return unsupported_call(
        f"Two results are named {alias}.",
        expected="each `as` once",
        found=alias,
        fix="Rename one of them.",
    )


def _alias_unknown(name: str, known: Iterable[str]) -> Problem:
    aliases = sorted(known)
    near = difflib.get_close_matches(name, aliases, n=1)
    return unsupported_call(
        f"No result is named {name}.",
        expected=f"one of: {', '.join(aliases) or 'none'}",
        found=name,
        fix=f"Did you mean {near[0]}?" if near else f"Give an earlier step `as: {name}`.",
    )


def _call_does_not_fit(step: Step, on: Handle) -> Problem:
    call = call_name(step.operator)
    *most, last = [f"a {KIND[kind]}" for kind, calls in CALLS_ON.items() if call in calls]
    takers = f"{', '.join(most)} or {last}" if most else last
    offered = ", ".join(CALLS_ON[type(on)])
    subject = f"`{step.input}`" if step.input is not None else "the result before it"
    return unsupported_call(
        f"`{call}` needs {takers}; {subject} is a {KIND[type(on)]}.",
        expected=takers,
        found=f"a {KIND[type(on)]}",
        at=step.at,
        fix=f"A {KIND[type(on)]} offers: {offered}." if offered else _NO_CALLS[KIND[type(on)]],
    )


def _call_in_a_branch(step: Step) -> Problem:
    call = call_name(step.operator)
    return unsupported_call(
        f"`{call}` is a call on the whole topology, not on a branch.",
        expected="calls of the DSL in `then`",
        found=call,
        at=step.at,
        fix=f"Make the call `{call}` outside of `then`.",
    )


def is_processor_api(operator: Operator) -> bool:
    """Return whether a call is one on a `Topology`.

    `addStateStore` with processors and `addGlobalStore` with a source name are calls on a `Topology`, too.
    """
    if isinstance(operator, processor_api.AddStateStore):
        return bool(operator.processors)
    if isinstance(operator, processor_api.AddGlobalStore):
        return operator.source_name is not None
    return type(operator) in _CALLS_ON_TOPOLOGY


def divide_calls(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """Return the calls of the DSL, and the calls on a `Topology`.

    `addStateStore` without processors is a call of both. It is one on the `Topology` after the last call of
    the DSL, which a program makes before it has the `Topology`, and after the first call on the `Topology`.
    """
    on_topology = [is_processor_api(step.operator) for step in steps]
    if True not in on_topology:
        return list(steps), []
    is_store = [isinstance(step.operator, processor_api.AddStateStore) for step in steps]
    of_dsl = [at for at in range(len(steps)) if not on_topology[at] and not is_store[at]]
    start = max([on_topology.index(True), *of_dsl])
    calls = [(step, on_topology[at] or (is_store[at] and at > start)) for at, step in enumerate(steps)]
    return [step for step, is_on in calls if not is_on], [step for step, is_on in calls if is_on]


def add_to_topology(topology: TopologyUnderConstruction, step: Step) -> None:
    """Make a call on a `Topology` (`divide_calls`)."""
    _CALLS_ON_TOPOLOGY[type(step.operator)](topology, step.operator, step.at)


def _add_source(topology: TopologyUnderConstruction, call: processor_api.AddSource, at: Location) -> None:
    reads = SourceSettings(with_serdes(RecordFormat(), call.serdes), call.offset_reset, call.timestamp)
    if call.topics.pattern is not None:
        topology.add_pattern_source(call.name, call.topics.pattern, at, reads)
    else:
        topology.add_source(call.name, call.topics.names, at, reads)


def _add_processor(
    topology: TopologyUnderConstruction, call: processor_api.AddProcessor, at: Location
) -> None:
    stores = [_build_store(topology, store, at) for store in call.connected]
    # later calls may connect stores, so the node has the names of its stores, not the behavior
    behavior = RunProcessor(call.processor_class)
    topology.add_processor(call.name, call.parents, at, stores, behavior)


def _add_sink(topology: TopologyUnderConstruction, call: processor_api.AddSink, at: Location) -> None:
    writes = SinkSettings(with_serdes(RecordFormat(), call.serdes), call.partitioner, call.topic_expression)
    topology.add_sink(call.name, call.parents, at, topic=call.topic, extractor=call.extractor, writes=writes)


def _connect_stores(
    topology: TopologyUnderConstruction, call: processor_api.ConnectStores, at: Location
) -> None:
    topology.connect(call.processor, call.stores, at)


def _add_state_store(
    topology: TopologyUnderConstruction, call: processor_api.AddStateStore, at: Location
) -> None:
    topology.add_store(_build_store(topology, call.store, at), at, *call.processors)


def _add_global_store(
    topology: TopologyUnderConstruction, call: processor_api.AddGlobalStore, at: Location
) -> None:
    source = call.source_name if call.source_name is not None else f"{call.name}-source"
    processor = call.name if call.name is not None else source
    store = _build_store(topology, call.store, at)
    if store.logged and topology.refuses_logged_global_stores:
        topology.problems.append(global_store_logged(store.name, at))
    topology.add_global_store(
        store,
        call.topic,
        source,
        processor,
        at,
        processor_class=call.processor_class,
        reads=SourceSettings(_filled_from(call)),
    )


def _add_read_only_store(
    topology: TopologyUnderConstruction, call: processor_api.AddReadOnlyStateStore, at: Location
) -> None:
    reads = SourceSettings(_filled_from(call), timestamp=call.timestamp)
    topology.add_source(call.source_name, (call.topic,), at, reads)
    stores = [_build_store(topology, call.store, at)]
    behavior = RunProcessor(call.processor_class)
    topology.add_processor(call.name, (call.source_name,), at, stores, behavior)
    topology.reuse_as_changelog(call.store.supplier.name, call.topic, at)


def _filled_from(call: processor_api.AddGlobalStore | processor_api.AddReadOnlyStateStore) -> RecordFormat:
    """Return the formats of the topic that fills a store; without serdes, the formats of the store."""
    return with_serdes(with_serdes(RecordFormat(), call.store.serdes), call.serdes)


def _build_store(topology: TopologyUnderConstruction, builder: StoreBuilder, at: Location) -> Store:
    topology.problems.extend(builder_problems(builder, at))
    return built_store(builder)


_CALLS_ON_TOPOLOGY: Mapping[type, Callable[[TopologyUnderConstruction, Any, Location], None]] = {
    processor_api.AddSource: _add_source,
    processor_api.AddProcessor: _add_processor,
    processor_api.AddSink: _add_sink,
    processor_api.ConnectStores: _connect_stores,
    processor_api.AddStateStore: _add_state_store,
    processor_api.AddGlobalStore: _add_global_store,
    processor_api.AddReadOnlyStateStore: _add_read_only_store,
}
