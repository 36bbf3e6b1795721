"""Random calls on streams, except joins and aggregations."""

from tests.runtime.engine.fuzzing.draft import BOTH, KEY, VALUE, Draft, Handle, NoPartnerError, Options

PROCESSORS = "tests.runtime.engine.fuzzing.processors"
_MEMORY: Options = {"name": "memory", "kind": "keyValue"}
_WINDOWS: Options = {"name": "windows", "kind": "window", "retention": 60_000, "windowSize": 10_000}
STORES: dict[str, tuple[Options, ...]] = {
    "Append": (),
    "Fail": (),
    "Remember": (_MEMORY,),
    "Report": (_MEMORY,),
    "Tick": (_MEMORY,),
    "Several": (_MEMORY, _WINDOWS),
    "Recent": (_WINDOWS,),
    "Version": ({"name": "versions", "kind": "versionedKeyValue", "retention": 20_000},),
    "Session": ({"name": "sessions", "kind": "session", "retention": 60_000},),
    "LookUp": (),
    "Spread": (),
    "Scan": ({"name": "scanned", "kind": "keyValue"},),
    "Stamped": ({"name": "stamped", "kind": "timestampedKeyValue"},),
    "Duplicates": ({**_WINDOWS, "name": "duplicates", "retention": 30_000, "retainDuplicates": True},),
    "Windows": ({**_WINDOWS, "name": "all-windows", "retention": 30_000},),
    "Sessions": ({"name": "all-sessions", "kind": "session", "retention": 40_000},),
}
"""Class → stores that it uses."""
_PUNCTUATED: tuple[str, ...] = ("Report", "Tick")


def values(draft: Draft, on: Handle) -> None:
    options = {"value": draft.functions.value, **VALUE}
    draft.emit("mapValues", options, "stream", on, windowed=on.windowed)


def select(draft: Draft, on: Handle) -> None:
    call = draft.random.choice(["filter", "filterNot", "peek"])
    options = {} if call == "peek" else {"where": draft.where()}
    draft.emit(call, options, "stream", on, windowed=on.windowed)


def process(draft: Draft, on: Handle) -> None:
    _run(draft, on, draft.random.choice([each for each in STORES if can_run(draft, each)]))


def can_run(draft: Draft, chosen: str) -> bool:
    missing = {"Report"}
    missing |= set() if "global" in draft.stores else {"LookUp"}
    missing |= set() if draft.survives else {"Fail"}
    return chosen not in missing


def report(draft: Draft, on: Handle) -> None:
    """Add a processor with stream-time punctuations."""
    _run(draft, on, "Report")


def _run(draft: Draft, on: Handle, chosen: str) -> None:
    if chosen in _PUNCTUATED:  # the order of two punctuations depends on a heap in Kafka Streams
        if chosen in draft.stores:
            return
        draft.stores.add(chosen)
    options = {"class": f"{PROCESSORS}:{chosen}", **_stores(draft, chosen)}
    if chosen in _PUNCTUATED or chosen == "Spread" or draft.chance(50):
        draft.emit("process", {**options, **BOTH}, "stream", on)
    else:
        draft.emit("processValues", {**options, **VALUE}, "stream", on)


def transform(draft: Draft, on: Handle) -> None:
    """Add `transformValues` of a table; half of them use a store."""
    forgets = on.windowed or "memory, own" in draft.stores or draft.chance(50)
    _transform(draft, on, "Append" if forgets else "Remember")


def forgetful_transform(draft: Draft, on: Handle) -> None:
    _transform(draft, on, "Append")


def _transform(draft: Draft, on: Handle, chosen: str) -> None:
    store, versioned = ({}, False) if on.windowed else draft.key_value_store(40)
    versioned = versioned if store else on.versioned
    stores = _stores(draft, chosen, by_name=True)  # Kafka Streams ignores stores of the supplier
    options = {"class": f"{PROCESSORS}:{chosen}", **stores, **VALUE, **store}
    draft.emit("transformValues", options, "table", on, windowed=on.windowed, versioned=versioned)


def _stores(draft: Draft, chosen: str, *, by_name: bool = False) -> Options:
    """Return stores of the supplier, or added by a step and named; the first choice applies to all."""
    stores = [_store(draft, each, by_name=by_name) for each in STORES[chosen]]
    return {"stores": stores} if stores else {}


def _store(draft: Draft, store: Options, *, by_name: bool) -> str | Options:
    name = store["name"]
    if f"{name}, own" in draft.stores:  # the test driver has one task: two such stores would be the same
        raise NoPartnerError
    if name not in draft.stores:
        draft.stores.add(name if by_name or draft.chance(50) else f"{name}, own")
        if name in draft.stores:
            draft.steps.append({"addStateStore": store | added_options(draft)})
    return name if name in draft.stores else store


def added_options(draft: Draft) -> Options:
    caching = {"caching": draft.chance(50)} if draft.chance(20) else {}
    return {"logging": False, **caching} if draft.chance(10) else caching


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


def through_a_topic(draft: Draft, on: Handle) -> None:
    """Write the stream to a topic that the application reads itself."""
    if on.counts:  # the default format cannot read numbers
        raise NoPartnerError
    topic = draft.name("mid")
    draft.steps.append({"to": {"from": on.alias, "topic": topic}})
    if draft.chance(60):
        draft.emit("stream", {"topic": topic}, "stream")
    else:
        store, versioned = draft.key_value_store(50)
        draft.emit("table", {"topic": topic, **store}, "table", versioned=versioned)


def split(draft: Draft, on: Handle) -> None:
    """Add a split. The same condition twice leaves a branch empty; others may be dropped."""
    first, second, rest = (Handle(draft.name("h"), "stream") for _ in range(3))
    branches: list[Options] = [{"where": draft.where(), "as": first.alias}]
    if draft.chance(30):
        branches[0]["then"] = [{"mapValues": {"value": draft.functions.value, **VALUE}}]
    if draft.chance(30):
        branches.append({"where": draft.where(), "as": second.alias})
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
