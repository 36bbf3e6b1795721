"""Calls on a stream that are neither joins nor aggregations."""

from tests.runtime.fuzzing.draft import BOTH, KEY, VALUE, Draft, Handle, Options

_PROCESSORS = "tests.runtime.fuzzing.processors"
_STORES: dict[str, Options] = {
    "Append": {},
    "Remember": {"name": "memory", "kind": "keyValue"},
    "Report": {"name": "memory", "kind": "keyValue"},
    "Tick": {"name": "memory", "kind": "keyValue"},
    "Recent": {"name": "windows", "kind": "window", "retention": 60_000, "windowSize": 10_000},
    "Version": {"name": "versions", "kind": "versionedKeyValue", "retention": 20_000},
    "Session": {"name": "sessions", "kind": "session", "retention": 60_000},
    "LookUp": {},
}
"""What each class needs."""
_PUNCTUATED: tuple[str, ...] = ("Report", "Tick")


def values(draft: Draft, on: Handle) -> None:
    options = {"value": draft.functions.value, **VALUE}
    draft.emit("mapValues", options, "stream", on, windowed=on.windowed)


def select(draft: Draft, on: Handle) -> None:
    call = draft.random.choice(["filter", "filterNot", "peek"])
    options = {} if call == "peek" else {"where": draft.functions.where}
    draft.emit(call, options, "stream", on, windowed=on.windowed)


def process(draft: Draft, on: Handle) -> None:
    excluded = {"Report", *([] if "global" in draft.stores else ["LookUp"])}
    _run(draft, on, draft.random.choice([each for each in _STORES if each not in excluded]))


def report(draft: Draft, on: Handle) -> None:
    """Punctuates by stream time."""
    _run(draft, on, "Report")


def _run(draft: Draft, on: Handle, chosen: str) -> None:
    if chosen in _PUNCTUATED:  # which of two is called first is left to a heap by Kafka Streams
        if chosen in draft.stores:
            return
        draft.stores.add(chosen)
    options = {"class": f"{_PROCESSORS}:{chosen}", **_stores(draft, chosen)}
    if chosen in _PUNCTUATED or draft.chance(50):
        draft.emit("process", {**options, **BOTH}, "stream", on)
    else:
        draft.emit("processValues", {**options, **VALUE}, "stream", on)


def transform(draft: Draft, on: Handle) -> None:
    """Of a table; one in two remembers what came before."""
    forgets = on.windowed or "memory, own" in draft.stores or draft.chance(50)
    _transform(draft, on, "Append" if forgets else "Remember")


def forgetful_transform(draft: Draft, on: Handle) -> None:
    _transform(draft, on, "Append")


def _transform(draft: Draft, on: Handle, chosen: str) -> None:
    store = {} if on.windowed else draft.store(40)
    stores = _stores(draft, chosen, by_name=True)  # Kafka Streams ignores those that the supplier brings
    options = {"class": f"{_PROCESSORS}:{chosen}", **stores, **VALUE, **store}
    draft.emit("transformValues", options, "table", on, windowed=on.windowed)


def _stores(draft: Draft, chosen: str, *, by_name: bool = False) -> Options:
    """As the supplier's own, or added by a step and named: what comes first holds for all."""
    store = _STORES[chosen]
    if not store:
        return {}
    name = store["name"]
    if name not in draft.stores and f"{name}, own" not in draft.stores:
        draft.stores.add(name if by_name or draft.chance(50) else f"{name}, own")
        if name in draft.stores:
            draft.steps.append({"addStateStore": store})
    return {"stores": [name if name in draft.stores else store]}


def rekey(draft: Draft, on: Handle) -> None:
    if draft.chance(50):
        draft.emit("selectKey", {"key": draft.functions.key, **KEY}, "stream", on)
    else:
        pair = {"key": draft.functions.key, "value": draft.functions.pair_value}
        draft.emit("map", {**pair, **BOTH}, "stream", on)


def flat(draft: Draft, on: Handle) -> None:
    if draft.chance(50):
        draft.emit("flatMap", {"each": draft.functions.pairs, **BOTH}, "stream", on)
    else:
        flat_values(draft, on)


def flat_values(draft: Draft, on: Handle) -> None:
    draft.emit("flatMapValues", {"each": draft.functions.values, **VALUE}, "stream", on)


def merge(draft: Draft, on: Handle) -> None:
    draft.emit("merge", {"with": draft.partner("stream").alias}, "stream", on)


def repartition(draft: Draft, on: Handle) -> None:
    draft.emit("repartition", draft.maybe_named(), "stream", on)


def split(draft: Draft, on: Handle) -> None:
    """The same condition twice: the second branch stays empty. What no branch takes may be dropped."""
    first, second, rest = (Handle(draft.name("h"), "stream") for _ in range(3))
    branches: list[Options] = [{"where": draft.functions.where, "as": first.alias}]
    if draft.chance(30):
        branches[0]["then"] = [{"mapValues": {"value": draft.functions.value, **VALUE}}]
    if draft.chance(30):
        branches.append({"where": draft.functions.where, "as": second.alias})
    made = [first, second][: len(branches)]
    options: Options = {"from": on.alias, "branches": branches}
    if draft.chance(70):
        options["default"] = {"as": rest.alias}
        made.append(rest)
    draft.steps.append({"split": options})
    draft.handles += made


def to_table(draft: Draft, on: Handle) -> None:
    store, versioned = draft.key_value_store(50)
    draft.emit("toTable", store, "table", on, versioned=versioned)
