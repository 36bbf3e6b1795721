"""Random groups, windows and aggregations."""

from tests.runtime.engine.fuzzing.draft import BOTH, KEY, VALUE, Draft, Handle, Options


def aggregate(draft: Draft, on: Handle) -> None:
    _group(draft, on)
    call, options = _fold(draft)
    store, versioned = draft.key_value_store(60)
    draft.emit(call, options | store, "table", versioned=versioned)


def windowed(draft: Draft, on: Handle) -> None:
    _group(draft, on)
    window = _window(draft)
    on_close = {"emit": "onWindowClose"} if "unlimited" not in window and draft.chance(25) else {}
    draft.steps.append({"windowedBy": {**window, **on_close}})
    call, options = _fold(draft, sessions="session" in window)
    store = windowed_store(draft, window, on_close=bool(on_close))
    draft.emit(call, options | store, "table", windowed=True)


def windowed_store(draft: Draft, window: Options, *, on_close: bool) -> Options:
    """Return a window store by name or as a supplier, with at least the required retention."""
    ((kind, lengths),) = window.items()
    by_name = kind == "unlimited" or (kind == "session" and on_close)  # it cannot emit from others
    if by_name or draft.chance(60):
        # in Kafka Streams, windows of in-memory stores expire before they are emitted on close; not here
        return draft.store(60, in_memory=not on_close)
    size = lengths.get("size", lengths.get("difference", lengths.get("gap", 0)))
    needed = lengths["grace"] + (2 * size if kind == "sliding" else size)
    retention = needed + draft.random.choice([0, 0, 1, 7_000, 200_000])
    options = draft.store_options(in_memory=not on_close)
    if draft.chance(50):
        return {"materialized": {"store": draft.name("st"), "retention": retention, **options}}
    where = {key: options.pop(key) for key in ("type",) if key in options}
    if kind == "session":
        supplier: Options = {"kind": "session"}
    else:
        # windows of a plain store have no timestamp: Kafka Streams fails when it emits them
        plain = [] if on_close else ["window"]
        supplier = {"kind": draft.random.choice([*plain, "timestampedWindow"]), "windowSize": size}
    supplier |= {"name": draft.name("ws"), "retention": retention, **where}
    return {"materialized": {"supplier": supplier, **options}}


def cogroup(draft: Draft, on: Handle) -> None:
    """Add a cogroup of two or three groups, with or without windows."""
    groups = [draft.name("c") for _ in range(draft.random.choice([2, 2, 3]))]
    _group(draft, on, groups[0])
    for each in groups[1:]:
        _group(draft, draft.partner("stream"), each)
    draft.steps.append({"cogroup": {"from": groups[0], "add": draft.functions.add}})
    draft.steps += [{"cogroup": {"with": each, "add": draft.functions.add}} for each in groups[1:]]
    window = _window(draft) if draft.chance(50) else {}
    if window:
        draft.steps.append({"windowedBy": window})
    merge = {"merge": draft.functions.merge} if "session" in window else {}
    store = {"materialized": {"store": draft.name("st"), **draft.store_options(), **VALUE}}
    options = {"init": draft.init(), **merge, **store}
    draft.emit("aggregate", options, "table", windowed=bool(window))


def regroup(draft: Draft, on: Handle) -> None:
    """Add an aggregation of a table, windowed or not."""
    group_table(draft, on)
    call, options = _fold(draft)
    if call != "count":
        options["remove"] = draft.functions.add
    store, versioned = draft.key_value_store(60)
    draft.emit(call, options | store, "table", versioned=versioned)


def group_table(draft: Draft, on: Handle) -> None:
    pair = {"key": draft.functions.key, "value": draft.functions.pair_value}
    draft.steps.append({"groupBy": {"from": on.alias, **pair, **BOTH}})


def _group(draft: Draft, on: Handle, alias: str | None = None) -> None:
    options = {"from": on.alias, **({"as": alias} if alias is not None else {})}
    if draft.chance(50):
        draft.steps.append({"groupByKey": options})
    else:
        draft.steps.append({"groupBy": {**options, "key": draft.functions.key, **KEY}})


def _window(draft: Draft) -> Options:
    grace = {"grace": draft.ms(0, 20)}
    kind = draft.random.choice(["tumbling", "hopping", "sliding", "session", "session", "unlimited"])
    if kind == "tumbling":
        return {kind: {"size": draft.ms(2, 20), **grace}}
    if kind == "hopping":
        advance, times = draft.random.randint(1, 8), draft.random.randint(1, 4)
        size = advance * 1000 * times + (draft.ms(0, 3) if times > 1 else 0)
        return {kind: {"size": size, "advance": advance * 1000, **grace}}
    if kind == "sliding":
        return {kind: {"difference": draft.ms(1, 15), **grace}}
    if kind == "unlimited":
        return {kind: {"start": draft.random.choice([0, 110_000])}}
    return {kind: {"gap": draft.ms(1, 15), **grace}}


def _fold(draft: Draft, *, sessions: bool = False) -> tuple[str, Options]:
    call = draft.random.choice(
        ["count", "reduce", "aggregate"] if draft.has_counts else ["reduce", "aggregate"]
    )
    if call == "count":
        return call, {}
    if call == "reduce":
        return call, {"add": draft.functions.add}
    merge = {"merge": draft.functions.merge} if sessions else {}
    return call, {"init": draft.init(), "add": draft.functions.add, **merge}
