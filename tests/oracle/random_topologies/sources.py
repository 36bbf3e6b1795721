"""Random sources, and topologies of the Processor API."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from tests.oracle.random_topologies.stores import Options, StoreGenerator

_NODES = frozenset(
    {"stream", "filter", "filterNot", "map", "mapValues", "flatMap", "selectKey", "peek", "merge", "process"}
)
"""Calls on streams and tables whose names are the names of nodes. Names of table sources are not."""


@attrs.frozen
class Handle:
    alias: str
    kind: str
    window: Mapping[str, Any] | None = None
    versioned: bool = False


@attrs.define
class SourceGenerator(StoreGenerator):
    """Generates the sources of a topology. `steps` are the calls, `handles` are the inputs of later calls."""

    steps: list[Options] = attrs.field(factory=list)
    handles: list[Handle] = attrs.field(factory=list)
    stream_topics: list[Options] = attrs.field(factory=list)
    topics: list[str] = attrs.field(factory=list)
    global_topics: list[str] = attrs.field(factory=list)
    nodes: list[str] = attrs.field(factory=list)
    """Names of nodes of the DSL, to which nodes of the Processor API can be attached."""

    # --- handles

    def _emit(
        self,
        operator: str,
        options: Options,
        kind: str | None,
        receiver: Handle | None = None,
        *,
        window: Mapping[str, Any] | None = None,
        versioned: bool = False,
    ) -> None:
        if receiver is not None:
            options = {"from": receiver.alias, **options}
        if isinstance(name := options.get("name"), str) and operator in _NODES:
            self.nodes.append(name)
        if kind is not None:
            alias = f"h{len(self.handles)}"
            options = {**options, "as": alias}
            self.handles.append(Handle(alias, kind, window, versioned))
        self.steps.append({operator: options or None})

    def _of(self, *kinds: str) -> list[Handle]:
        """Return handles of these kinds, latest first: the simplest choice continues the chain."""
        return [handle for handle in reversed(self.handles) if handle.kind in kinds]

    # --- sources

    def _topic(self) -> str:
        topic = self.fresh("t")
        if self.similar and self.choices.chance(15):
            topic = self.similar_name("t")
        self.topics.append(topic)
        return topic

    def _source(self) -> None:
        form = self.choices.number(20)
        if form <= 8:
            self._emit("stream", self._stream_topics() | self.name(20), "stream")
        elif form <= 14:
            self._table()
        elif form <= 16:
            self._global_table()
        elif form == 17:
            builder = self.builder()
            self.stores.append(builder["name"])
            self._emit("addStateStore", builder, None)
        elif form == 18:
            topic = self.fresh("g")
            self.global_topics.append(topic)
            builder = self.builder() | {"logging": False}
            if builder["kind"] == "versionedKeyValue" and not self.bad:
                builder["kind"], _ = "keyValue", builder.pop("retention")
            self._emit("addGlobalStore", {"store": builder, "topic": topic, **self.name(20)}, None)
        elif self.bad and self.topics:
            self._emit("stream", {"topics": [self.choices.pick(self.topics), self._topic()]}, "stream")
        else:
            self._emit("stream", self._stream_topics() | self.name(20), "stream")

    def _stream_topics(self) -> Options:
        if self.stream_topics and self.choices.chance(30):
            again = dict(self.choices.pick(self.stream_topics))
            if "topics" in again and self.rarely(50):
                again["topics"] = again["topics"][::-1]
            return again
        form = self.choices.number(10)
        value: str | list[str]
        if form <= 6:
            key, value = "topic", self._topic()
        elif form <= 8:
            count = 1 + self.choices.number(20) if self.rarely(20) else 2
            key, value = "topics", [self._topic() for _ in range(count)]
        else:
            prefix = self.fresh("p")
            self.topics += [f"{prefix}-a", f"{prefix}-bb"]
            key, value = (
                "pattern",
                prefix + self.choices.pick(("-.*", "-(a|bb)", "-[ab), ]+", "-(?!x).{1,2}")),
            )
        policy = self.choices.pick(("earliest", "latest", "none", "by_duration:PT1H"))
        reset = {"offsetReset": policy} if self.choices.chance(10) else {}
        self.stream_topics.append(
            {key: value} if self.bad and self.choices.chance(20) else {key: value, **reset}
        )
        return {key: value, **reset}

    def _table(self) -> None:
        topic = (
            self.choices.pick(self.topics)
            if self.bad and self.topics and self.choices.chance(20)
            else self._topic()
        )
        store = self.materialized()
        self._emit(
            "table", {"topic": topic, **self.name(20), **store}, "table", versioned=is_versioned(store)
        )

    def _global_table(self) -> None:
        topic = self.fresh("g")
        self.global_topics.append(topic)
        store = self.materialized()
        if is_versioned(store) and not self.bad:
            store = {}
        self._emit("globalTable", {"topic": topic, **self.name(20), **store}, "global")

    # --- Processor API

    def _processor_api(self) -> None:
        nodes: list[str] = []
        readers: list[str] = []
        for _ in range(1 + self.choices.number(2)):
            readers.append(self.fresh("src"))
            self._emit("addSource", {"name": readers[-1], **self._source_topics()}, None)
        if self.bad and self.names and self.choices.chance(40):
            readers.append(self.choices.pick(self.names))
        if self.nodes and self.rarely(40):
            readers.append(self.choices.pick(self.nodes))
        for _ in range(self.choices.number(4)):
            name = self.any_name("proc") if self.similar else self.fresh("proc")
            nodes.append(name + self.choices.pick(("", "", "", ", with a comma", " (odd)")))
            if self.rarely(10):
                nodes[-1] += self.choices.pick((" é", "😀", "\uff5e"))
            parents = list(
                dict.fromkeys(
                    self.choices.pick([*readers, *nodes[:-1]]) for _ in range(1 + self.choices.number(2))
                )
            )
            stores = {"stores": [self.builder()]} if self.choices.chance(25) else {}
            self._emit("addProcessor", {"name": nodes[-1], "parents": parents, **stores}, None)
        if nodes and self.choices.chance(50):
            known = [*nodes, *self.nodes] if self.rarely(20) else nodes
            connected = list(dict.fromkeys(self.choices.pick(known) for _ in range(2)))
            store = self.builder()
            self._emit("addStateStore", {**store, "processors": connected}, None)
            if self.choices.chance(40):
                chosen = self.choices.pick(known)
                names = list(dict.fromkeys([store["name"], *self._some_stores()]))
                self._emit("connectProcessorAndStateStores", {"processor": chosen, "stores": names}, None)
        if self.choices.chance(15):
            self._read_only_store(nodes)
        if self.rarely(15):
            self._global_store_of_topology()
        if self.choices.chance(60):
            parents = [self.choices.pick([*readers, *nodes])]
            target = {"topic": self.fresh("out")} if self.choices.chance(80) else {"extractor": "Router@2"}
            self._emit("addSink", {"name": self.fresh("sink"), **target, "parents": parents}, None)

    def _read_only_store(self, processors: Sequence[str]) -> None:
        store, name = self.builder(), self.fresh("load")
        self._emit(
            "addReadOnlyStateStore",
            {"store": store, "topic": self._topic(), "sourceName": self.fresh("src"), "name": name},
            None,
        )
        if processors and self.choices.chance(60):
            reader = self.choices.pick(processors)
            self._emit(
                "connectProcessorAndStateStores", {"processor": reader, "stores": [store["name"]]}, None
            )

    def _global_store_of_topology(self) -> None:
        """Add a call of `Topology#addGlobalStore`."""
        topic = self.fresh("g")
        self.global_topics.append(topic)
        builder = self.builder() | {"logging": False}
        options = {"sourceName": self.fresh("src"), "name": self.fresh("load")}
        self._emit("addGlobalStore", {"store": builder, "topic": topic, **options}, None)

    def _source_topics(self) -> Options:
        form = self.choices.number(10)
        if form == 9 and self.bad and self.topics:
            return {"topic": self.choices.pick(self.topics)}
        if form == 8:
            return {"topics": [self._topic(), self._topic()]}
        if form == 7:
            prefix = self.fresh("p")
            self.topics.append(f"{prefix}-a")
            return {"pattern": f"{prefix}-[a-z]+"}
        return {"topic": self._topic()}


def is_versioned(options: Mapping[str, Any]) -> bool:
    store = options.get("materialized")
    return isinstance(store, dict) and store.get("supplier", {}).get("kind") == "versionedKeyValue"
