"""Random calls on a `Topology`: sources, processors with stores, and sinks."""

from tests.runtime.engine.fuzzing.draft import Draft, Options
from tests.runtime.engine.fuzzing.sources import timestamps
from tests.runtime.engine.fuzzing.streams import PROCESSORS, STORES, added_options, can_run

_PUNCTUATED = frozenset({"Report", "Tick"})
_READ_ONLY: Options = {"name": "global", "kind": "keyValue"}
"""The store that `Keep` fills and `LookUp` reads."""


def topology(draft: Draft) -> None:
    """Add sources, processors below them, and a sink below each."""
    sources = [_source(draft) for _ in range(draft.random.choice([1, 1, 2]))]
    nodes: list[str] = []
    if draft.chance(25):
        _read_only_store(draft)
    for _ in range(draft.random.randint(1, 4)):
        known = [*sources, *nodes]
        parents = draft.random.sample(known, min(len(known), draft.random.choice([1, 1, 1, 2])))
        nodes += _choice(draft, parents) if draft.chance(15) else _processor(draft, parents)
    if draft.chance(20):
        nodes.append(draft.random.choice(sources))
    for node in nodes:
        parents = [node, draft.random.choice(nodes)] if draft.chance(15) else [node]
        name = draft.name("sink")
        target: Options = {"topic": f"out-{name}"}
        if draft.chance(10):
            target = {"topicExpression": draft.functions.topic}
        draft.steps.append({"addSink": {"name": name, "parents": list(dict.fromkeys(parents)), **target}})


def _source(draft: Draft) -> str:
    name = draft.name("src")
    topics: Options = (
        {"topics": [draft.topic(), draft.topic()]} if draft.chance(20) else {"topic": draft.topic()}
    )
    draft.steps.append({"addSource": {"name": name, **topics, **timestamps(draft)}})
    return name


def _read_only_store(draft: Draft) -> None:
    """Add a store that a topic fills, and that serves as its changelog."""
    if "global" in draft.stores:
        return
    nodes = {"sourceName": draft.name("src"), "name": draft.name("load")}
    options = {"store": _READ_ONLY, "topic": draft.topic(), **nodes, "class": f"{PROCESSORS}:Keep"}
    draft.steps.append({"addReadOnlyStateStore": options})
    draft.stores |= {"global", "global, read only"}


def _choice(draft: Draft, parents: list[str]) -> list[str]:
    """Add a processor that forwards each record to one of two children, by name."""
    if "even" in draft.stores:
        return _processor(draft, parents)
    draft.stores.add("even")
    name = draft.name("choice")
    draft.steps.append({"addProcessor": {"name": name, "parents": parents, "class": f"{PROCESSORS}:Choose"}})
    for child in ("even", "odd"):
        options = {"name": child, "parents": [name], "class": f"{PROCESSORS}:Append"}
        draft.steps.append({"addProcessor": options})
    return ["even", "odd"]


def _processor(draft: Draft, parents: list[str]) -> list[str]:
    usable = [each for each in STORES if can_run(draft, each) and each not in _PUNCTUATED]
    chosen = draft.random.choice(usable)
    if any(f"{store['name']}, own" in draft.stores for store in STORES[chosen]):
        chosen = "Append"
    name = draft.name("p")
    options: Options = {"name": name, "parents": parents, "class": f"{PROCESSORS}:{chosen}"}
    own, added, known = [], [], []
    for store in STORES[chosen]:
        if store["name"] in draft.stores:
            known.append(store["name"])
        elif draft.chance(40):
            own.append({**store, **added_options(draft)})
            draft.stores.add(f"{store['name']}, own")
        else:
            added.append({**store, **added_options(draft), "processors": [name]})
            draft.stores.add(store["name"])
    if chosen == "LookUp" and "global, read only" in draft.stores:
        known.append("global")
    draft.steps.append({"addProcessor": {**options, "stores": own} if own else options})
    draft.steps += [{"addStateStore": each} for each in added]
    if known:
        draft.steps.append({"connectProcessorAndStateStores": {"processor": name, "stores": known}})
    return [name]
