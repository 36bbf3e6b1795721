"""Random joins."""

from tests.runtime.engine.fuzzing.draft import VALUE, Draft, Handle, NoPartnerError, Options


def streams(draft: Draft, on: Handle) -> None:
    """Add a stream-stream join: also with itself, with windows after the record, with own stores."""
    call = draft.random.choice(["join", "leftJoin", "outerJoin"])
    other = draft.partner("stream")
    if other.counts:  # Kafka Streams stores the other side in the default format, the engine in its own
        raise NoPartnerError
    before, after = _bounds(draft)
    grace = draft.ms(0, 15)
    window: Options = {"before": before, "after": after, "grace": grace}
    if before == after:
        window = {"difference": before, "grace": grace}
    window |= {"eager": True} if draft.chance(20) else {}
    options = {"with": other.alias, "window": window, "value": draft.functions.join}
    stores = _stores(draft, before + after, grace) if draft.chance(25) else draft.maybe_named()
    stores |= {"logging": False} if draft.chance(10) else {}
    draft.emit(call, {**options, **VALUE, **stores}, "stream", on)


def _bounds(draft: Draft) -> tuple[int, int]:
    """Return before and after, whose sum is not negative; one of them may be negative."""
    one, other = draft.ms(0, 12), draft.ms(0, 12)
    if draft.chance(55):
        return one, one
    if draft.chance(25):
        return (-min(one, other), max(one, other))[:: draft.random.choice([1, -1])]  # type: ignore[return-value]
    return one, other


def _stores(draft: Draft, size: int, grace: int) -> Options:
    if draft.chance(40):
        return {"storeName": draft.name("s")}
    kind = {"type": "in-memory"} if draft.chance(30) else {}
    sides = draft.random.choice([("thisStore", "otherStore"), ("thisStore",), ("otherStore",)])
    return {
        side: {"name": draft.name("js"), "retention": size + grace, "windowSize": size, **kind}
        for side in sides
    }


def with_table(draft: Draft, on: Handle) -> None:
    table = draft.partner("table")
    call = _inner_or_left(draft)
    # Kafka Streams fails on a null key in a left join with a grace period; here it is joined at once
    waits = table.versioned and not (call == "leftJoin" and draft.survives)
    grace = {"grace": draft.ms(0, 5)} if waits and draft.chance(60) else {}
    options = {"with": table.alias, "value": draft.functions.join, **VALUE, **grace}
    draft.emit(call, options | draft.maybe_named(), "stream", on)


def with_global(draft: Draft, on: Handle) -> None:
    table = draft.partner("global")
    options = {"with": table.alias, "key": draft.functions.key, "value": draft.functions.join, **VALUE}
    draft.emit(_inner_or_left(draft), options, "stream", on)


def tables(draft: Draft, on: Handle) -> None:
    call = draft.random.choice(["join", "leftJoin", "outerJoin"])
    store, versioned = draft.key_value_store(40)
    options = {"with": draft.table_to_join(on).alias, "value": draft.functions.join, **VALUE}
    draft.emit(call, options | draft.maybe_named() | store, "table", on, versioned=versioned)


def windowed_tables(draft: Draft, on: Handle) -> None:
    call = draft.random.choice(["join", "leftJoin", "outerJoin"])
    other = draft.partner("table", windowed=True)
    options = {"with": other.alias, "value": draft.functions.join, **VALUE}
    draft.emit(call, options | draft.maybe_named(), "table", on, windowed=True)


def foreign_key(draft: Draft, on: Handle) -> None:
    _foreign_key(draft, on, _inner_or_left(draft))


def left_foreign_key(draft: Draft, on: Handle) -> None:
    _foreign_key(draft, on, "leftJoin")


def _foreign_key(draft: Draft, on: Handle, call: str) -> None:
    functions = draft.functions
    other = draft.table_to_join(on).alias
    options = {"with": other, "foreignKey": functions.foreign_key, "value": functions.join, **VALUE}
    store, versioned = draft.key_value_store(40)
    draft.emit(call, options | draft.maybe_named() | store, "table", on, versioned=versioned)


def _inner_or_left(draft: Draft) -> str:
    return draft.random.choice(["join", "leftJoin"])
