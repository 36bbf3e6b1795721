"""The stores that the runtime opens have the layers and settings of the stores that Kafka Streams builds."""

import json
import os
import random
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import pytest

from headwater.compiler import build_nodes
from headwater.model.behaviors import StreamAggregate
from headwater.model.formats import StoreSettings
from headwater.model.nodes import NodeTopology, ProcessorNode, SourceNode, StateStore
from headwater.model.problems import errors
from headwater.model.topology import TopologyDocument
from headwater.model.versions import SUPPORTED
from headwater.model.windows import SessionWindow
from headwater.spec import load_text
from headwater_spark.engine.program.settings import engine_settings
from tests.oracle.kafka_streams import KafkaStreams, Refusal
from tests.oracle.random_topologies.generator import Generator as TopologyGenerator
from tests.oracle.random_topologies.stores import Choices
from tests.oracle.recorded import CASES, Case
from tests.runtime.engine.fuzzing.generation import Generator
from tests.runtime.engine.fuzzing.test_data import of_version
from tests.yaml_text import load_yaml

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(0)]
VERSIONS = ("3.9.2", "4.1.2", str(SUPPORTED[-1]))
_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "1000"))
_IN_MEMORY: tuple[Mapping[str, str], ...] = (
    {},
    {},
    {"default.dsl.store": "in_memory"},
    {
        "dsl.store.suppliers.class": (
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"
        ),
        "default.dsl.store": "rocksDB",
    },
)
_KINDS = {
    "MeteredKeyValueStore": "keyValue",
    "MeteredTimestampedKeyValueStore": "timestampedKeyValue",
    "MeteredVersionedKeyValueStore": "versionedKeyValue",
    "MeteredWindowStore": "window",
    "MeteredTimestampedWindowStore": "timestampedWindow",
    "MeteredSessionStore": "session",
    "InMemoryTimeOrderedKeyValueChangeBuffer": "suppress",
    "RocksDBTimeOrderedKeyValueBuffer": "joinBuffer",
}
"""The outermost layer → the kind."""
_BUFFERS = frozenset({"suppress", "joinBuffer"})
_WINDOWS = frozenset({"window", "timestampedWindow"})
_WITH_TIME = frozenset({*_WINDOWS, "session", "versionedKeyValue"})


@attrs.frozen
class Layers:
    """What is known of a store on both sides."""

    kind: str
    cached: bool
    logged: bool
    with_headers: bool
    """The changelog gets headers of records."""
    on_disk: bool | None
    """None = not compared: the config decides, and not for all stores. Only in joins it affects results."""
    retention_ms: int | None = None
    window_size_ms: int | None = None
    retains_duplicates: bool = False
    drops_timestamps: bool = False
    ordered_by_time: bool = False


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest, kafka_streams_of: Any) -> KafkaStreams:  # noqa: ANN401 - a fixture
    started: KafkaStreams = kafka_streams_of(request.param)
    return started


def real(found: Mapping[str, Any]) -> Layers:
    names: list[str] = found["layers"]
    outermost = names[0].removesuffix("WithHeaders")
    kind = "list" if "ListValueStore" in names else _KINDS[outermost]
    # in 4.3, window stores of joins are wrapped as if their values had timestamps
    is_join = kind == "timestampedWindow" and found.get("retainDuplicates") and outermost != names[0]
    kind = "window" if is_join else kind
    return Layers(
        kind=kind,
        cached=any("Caching" in name for name in names),
        logged=found["loggingEnabled"]
        if kind in _BUFFERS
        else any("ChangeLogging" in name for name in names),
        with_headers=outermost != names[0],
        on_disk=found["persistent"],
        retention_ms=found.get("retention") if kind in _WITH_TIME else None,
        window_size_ms=found.get("windowSize") if kind in _WINDOWS else None,
        retains_duplicates=bool(found.get("retainDuplicates")) if kind in _WINDOWS else False,
        drops_timestamps=any(name.endswith("TimestampedKeyValueByteStoreAdapter") for name in names)
        or any(name.endswith("TimestampedWindowByteStoreAdapter") for name in names),
        ordered_by_time=kind not in _BUFFERS and any("TimeOrdered" in n for n in names if "Caching" not in n),
    )


def expected(document: TopologyDocument, nodes: NodeTopology) -> dict[str, Layers]:
    on_close = {
        node.behavior.store: node.behavior
        for node in nodes.nodes
        if isinstance(node, ProcessorNode)
        and isinstance(node.behavior, StreamAggregate)
        and node.behavior.emit_on_close
    }
    in_memory = engine_settings(document.application.config).stores_in_memory
    has_cache = engine_settings(document.application.config).cache_max_bytes > 0
    found = {}
    for store in nodes.stores:
        if store.keeps is not None:
            layers = _layers(store, store.keeps, in_memory)
            ordered = store.name in on_close and (
                isinstance(on_close[store.name].window, SessionWindow) or not store.keeps.ordered_by_key
            )
            is_on_disk = not (in_memory if store.keeps.in_memory is None else store.keeps.in_memory)
            found[store.name] = attrs.evolve(
                layers, cached=layers.cached and has_cache, ordered_by_time=ordered and is_on_disk
            )
    return found


def _layers(store: StateStore, keeps: StoreSettings, in_memory: bool) -> Layers:  # noqa: FBT001
    kind = "timestampedKeyValue" if keeps.kind == "subscription" else keeps.kind
    is_in_memory = in_memory if keeps.in_memory is None and keeps.kind == "window" else keeps.in_memory
    return Layers(
        kind=kind,
        cached=keeps.caching,
        logged=store.logged and store.changelog_topic is None and not store.is_global,
        with_headers=keeps.logs_headers,
        on_disk={"suppress": False, "joinBuffer": True}.get(
            keeps.kind, None if is_in_memory is None else not is_in_memory
        ),
        retention_ms=keeps.retention_ms if kind in _WITH_TIME else None,
        window_size_ms=keeps.window_size_ms if kind in _WINDOWS else None,
        retains_duplicates=keeps.retain_duplicates,
        drops_timestamps=keeps.without_timestamps,
    )


def differences(kafka_streams: KafkaStreams, raw: Mapping[str, Any]) -> Iterator[str]:
    document = of_version(dict(raw), kafka_streams.version)
    loaded = load_text(json.dumps(document), "stores.json")
    if loaded.problems:
        return
    nodes = build_nodes(loaded.documents[0])
    if errors(nodes.problems):
        return
    topics = {topic: 1 for node in nodes.nodes if isinstance(node, SourceNode) for topic in node.topics}
    answer = kafka_streams.stores(document, topics)
    if isinstance(answer, Refusal):
        return  # other tests compare refusals
    ours, theirs = expected(loaded.documents[0], nodes), {name: real(each) for name, each in answer.items()}
    for name in sorted(ours.keys() & theirs.keys()):
        one, other = ours[name], theirs[name]
        other = attrs.evolve(other, on_disk=None) if one.on_disk is None else other
        if one != other:
            yield f"{name}: {one} instead of {other} {answer[name]['layers']}\n{json.dumps(raw)}"
    missing = theirs.keys() - ours.keys()
    if missing:
        yield f"{sorted(missing)}\n{json.dumps(raw)}"


def random_document(seed: int) -> dict[str, Any]:
    chance = random.Random(seed)  # noqa: S311 - the same topologies in each run
    if seed % 2:
        document = TopologyGenerator(Choices(chance.randrange)).document(1 + seed % 20)
    else:
        document = Generator(chance).document(chance.randint(1, 8))
    application = dict(document["application"])
    config = {**application.get("config", {}), **chance.choice(_IN_MEMORY)}
    config.pop("dsl.store.format", None)  # the runtime refuses `HEADERS`
    if chance.randrange(4) == 0:
        config["statestore.cache.max.bytes"] = "0"
    return {**document, "application": {**application, "config": config}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_stores_of_recorded_cases(version: KafkaStreams, case: Case) -> None:
    raw = load_yaml(case.text("document.yaml"))
    assert not list(differences(version, raw))


@pytest.mark.parametrize("seed", range(40))
def test_stores_of_random_topologies(version: KafkaStreams, seed: int) -> None:
    assert not list(differences(version, random_document(seed)))


@pytest.mark.soak
def test_stores_of_random_topologies_for_long(version: KafkaStreams) -> None:
    for seed in range(1000, 1000 + _LONG):
        found = list(differences(version, random_document(seed)))
        assert not found, (seed, found)
