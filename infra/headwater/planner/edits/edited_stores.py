"""Finds what was edited of stores that no verdict shows: caches and types, and stores without changelogs."""

from collections.abc import Iterator, Mapping

from headwater.model.nodes import StateStore
from headwater.planner.edits.layouts import default_is_in_memory, serde_name
from headwater.planner.edits.matching import Sides
from headwater.planner.edits.topologies import Topology
from headwater.planner.edits.values import OperatorEdit
from headwater.planner.phrases import duration_phrase

STORE = "store"
_CACHE, _TYPE, _KIND = "cache", "type of store", "kind of store"
_RETENTION, _LENGTH, _DUPLICATES = "retention", "length of windows", "duplicates"
_KEYS, _VALUES, _MOVES = "serde of keys", "serde of values", "keys of entries"
_WHY_CACHE = "It decides how many results are sent on before the last one of a key. The state is kept."
_WHY_MOVES = "It decides whether entries can move to more processors. The state is kept."
_RESTORED = "Instances restore it from its changelog."
_GLOBAL = (
    "Stop each instance and delete the local state of the global store before it starts again: it is filled "
    "from its topic."
)
_LOST = "It has no changelog: entries on local disks that it cannot read, and entries in memory, are lost."
_NEW_GLOBAL = "Each instance fills it from its topic when it starts."
_NEW_UNLOGGED = "It has no changelog, and starts empty."
_OLD_GLOBAL = "Its entries are in its topic. Delete its local state."
_OLD_UNLOGGED = "It had no changelog: its entries were on local disks or in memory only, and are lost."


def edited_stores(sides: Sides) -> Iterator[OperatorEdit]:
    """Yield what changes of stores, in the order of the topology afterwards, then the removed ones.

    What changes of changelogs is in verdicts, so stores without one have more aspects here.
    """
    before, after = (
        {store.name: store for store in each.nodes.stores} for each in (sides.before, sides.after)
    )
    olds = {new: old for (is_store, old), new in sides.continued.items() if is_store}
    for name, store in after.items():
        old = before.get(olds.get(name, name))
        if old is not None:
            yield from _find_changes(sides, old, store)
        elif _has_no_verdict(store):
            yield _only_on_one_side(store, is_new=True)
    continued = {olds.get(name, name) for name in after}
    for name, store in before.items():
        if name not in continued and _has_no_verdict(store):
            yield _only_on_one_side(store, is_new=False)


def _has_no_verdict(store: StateStore) -> bool:
    return store.is_global or not store.logged


def _only_on_one_side(store: StateStore, *, is_new: bool) -> OperatorEdit:
    whys = (_OLD_GLOBAL, _NEW_GLOBAL) if store.is_global else (_OLD_UNLOGGED, _NEW_UNLOGGED)
    return OperatorEdit(
        operator=store.name,
        aspect=STORE,
        before=None if is_new else store.name,
        after=store.name if is_new else None,
        why=whys[is_new],
        location=store.at,
    )


def _find_changes(sides: Sides, old: StateStore, new: StateStore) -> Iterator[OperatorEdit]:
    first, second = _show_aspects(sides.before, old), _show_aspects(sides.after, new)
    for aspect in dict.fromkeys((*first, *second)):
        values = first.get(aspect), second.get(aspect)
        if values[0] != values[1] and aspect in first.keys() & second.keys():
            yield OperatorEdit(
                operator=new.name,
                aspect=aspect,
                before=values[0],
                after=values[1],
                why=_explain_change(new, aspect),
                location=new.at,
            )


def _explain_change(store: StateStore, aspect: str) -> str:
    if aspect in (_CACHE, _MOVES):
        return _WHY_CACHE if aspect == _CACHE else _WHY_MOVES
    if store.is_global:
        return _GLOBAL
    return _RESTORED if store.logged else _LOST


def _show_aspects(topology: Topology, store: StateStore) -> Mapping[str, str | None]:
    """Return aspect → value; a text of `Topology#describe()` and code do not show them."""
    keeps = store.keeps
    if keeps is None:
        return {}
    config = topology.application.config
    in_memory = default_is_in_memory(config) if keeps.in_memory is None else keeps.in_memory
    found = {
        _CACHE: "yes" if keeps.caching else "no",
        _TYPE: "in memory" if in_memory else "on disk",
        _MOVES: "keys of records" if keeps.keyed_by_record else None,
    }
    if not _has_no_verdict(store):
        return found
    return {
        **found,
        _KIND: keeps.kind,
        _KEYS: serde_name(keeps.format.key, config, "key"),
        _VALUES: serde_name(keeps.format.value, config, "value"),
        _RETENTION: _show_duration(keeps.retention_ms),
        _LENGTH: _show_duration(keeps.window_size_ms),
        _DUPLICATES: "yes" if keeps.retain_duplicates else "no",
    }


def _show_duration(milliseconds: int | None) -> str | None:
    return duration_phrase(milliseconds) if milliseconds is not None else None
