"""The layout of a store's entries in local state: what has to stay the same, so that they can be read again.

Changelog topics have the bytes of Kafka Streams, entries of local state have our own keys. A window store,
for example, finds its entries by their segments, whose length follows from the retention. After an edit of
the document, or with another version of Headwater, entries of another layout would not be found, and nothing
would report it. So local state has the layout of each store, and a store with another one is restored.
"""

from collections.abc import Mapping
from typing import Final

from headwater.model.behaviors import StreamAggregate
from headwater.model.formats import StoreSettings
from headwater.model.nodes import ProcessorNode
from headwater_spark.engine.program_interface import Program
from headwater_spark.engine.stores.segments import Segments

ENTRY_FORMAT: Final = 1
"""Raise it when the entries of any kind of store are written differently: all stores are restored then."""
_SEGMENTED = frozenset({"window", "timestampedWindow", "session"})


def store_layouts(program: Program) -> Mapping[str, str]:
    """Return store → layout of its entries, for the stores that its tasks own."""
    emitting = stores_emitted_on_close(program)
    return {
        store.name: _describe_layout(store.keeps, emits_on_close=store.name in emitting)
        for store in program.stores
        if store.keeps is not None and not store.is_global
    }


def stores_to_restore(known: Mapping[str, str], present: Mapping[str, str]) -> tuple[str, ...]:
    """Return the stores of which local state has entries of another layout.

    Args:
        known: The layouts in local state; a store is missing if a version of Headwater wrote it that did not
            record layouts. It has the first format.
        present: The layouts of `store_layouts`.
    """
    return tuple(store for store, layout in present.items() if known.get(store, layout) != layout)


def stores_emitted_on_close(program: Program) -> frozenset[str]:
    """Return the stores whose entries are needed in the order of time, too (`TimeIndex`)."""
    return frozenset(
        node.behavior.store
        for node in program.nodes
        if isinstance(node, ProcessorNode)
        and isinstance(node.behavior, StreamAggregate)
        and node.behavior.emit_on_close
    )


def _describe_layout(settings: StoreSettings, *, emits_on_close: bool) -> str:
    """Return a text that is equal for equal layouts.

    Serdes are no part of it: entries have the bytes of the changelog topic, which would not fit either.
    """
    parts = [f"format {ENTRY_FORMAT}", settings.kind]
    if settings.kind in _SEGMENTED:
        parts.append(f"segments of {Segments(settings.retention_ms or 0).interval} ms")
        if settings.retain_duplicates:
            parts.append("duplicates")
        if emits_on_close:
            parts.append("index by time")
    return ", ".join(parts)
