"""Random calls on tables, except joins and aggregations."""

from tests.runtime.engine.fuzzing.draft import KEY, VALUE, Draft, Handle, Options


def values(draft: Draft, on: Handle) -> None:
    store, versioned = _store(draft, on)
    options = {"value": draft.functions.value, **VALUE, **store}
    draft.emit("mapValues", options, "table", on, windowed=on.windowed, versioned=versioned)


def select(draft: Draft, on: Handle) -> None:
    # in Kafka Streams a filter's store has the default format, and its result that of the counts
    store, versioned = ({}, on.versioned) if on.counts else _store(draft, on)
    options = {"where": draft.where(), **store}
    call = draft.random.choice(["filter", "filterNot"])
    draft.emit(call, options, "table", on, windowed=on.windowed, versioned=versioned)


def to_stream(draft: Draft, on: Handle) -> None:
    if draft.chance(25):
        draft.emit("toStream", {"selectKey": draft.functions.key}, "stream", on)
        if draft.chance(50):
            draft.emit("selectKey", {"key": draft.functions.key, **KEY}, "stream", draft.handles[-1])
    else:
        draft.emit("toStream", {}, "stream", on, windowed=on.windowed)


def suppress(draft: Draft, on: Handle) -> None:
    if on.versioned or (
        on.windowed and draft.survives
    ):  # text of windowed keys cannot be read by the next node
        return
    if on.windowed and draft.chance(70):
        options: Options = {"until": "windowCloses"}
        if draft.chance(20):
            options |= {"maxRecords": draft.random.randint(20, 60), "whenFull": "shutDown"}
    else:
        options = {"until": "timeLimit", "timeLimit": draft.ms(-5, 20)}
        if draft.chance(30):
            options |= {"maxRecords": draft.random.randint(1, 4), "whenFull": "emitEarly"}
        if draft.chance(30):
            options |= {"maxBytes": draft.random.randint(50, 800), "whenFull": "emitEarly"}
    options |= {"logging": False} if draft.chance(15) else {}
    draft.emit("suppress", options | draft.maybe_named(), "table", on, windowed=on.windowed)


def _store(draft: Draft, on: Handle) -> tuple[Options, bool]:
    """Return a store, and whether the result has versions: its own, or those of its parent."""
    store, versioned = ({}, False) if on.windowed else draft.key_value_store(40)
    return store, versioned if store else on.versioned
