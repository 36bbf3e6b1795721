"""Which edits of a store give its entries another layout."""

from typing import Any

import pytest

from headwater.model.formats import Format, RecordFormat, StoreSettings
from headwater.model.nodes import ChangelogKind, StateStore
from headwater_spark.engine.stores.store_layouts import store_layouts, stores_to_restore

HOUR = 3_600_000
FORMAT = RecordFormat(Format("string"), Format("long"))


def layout(kind: Any, **settings: Any) -> str:  # noqa: ANN401 - of `StoreSettings`
    keeps = StoreSettings(kind=kind, format=FORMAT, **settings)
    program: Any = Program((StateStore("s", ChangelogKind.KEY_VALUE, keeps=keeps),))
    return store_layouts(program)["s"]


class Program:
    nodes = ()

    def __init__(self, stores: tuple[StateStore, ...]) -> None:
        self.stores = stores


@pytest.mark.parametrize("kind", ["window", "timestampedWindow", "session"])
def test_segments_follow_from_the_retention(kind: str) -> None:
    assert layout(kind, retention_ms=HOUR) != layout(kind, retention_ms=2 * HOUR)
    assert layout(kind, retention_ms=1_000) == layout(kind, retention_ms=100_000), (
        "both have the least length"
    )


@pytest.mark.parametrize("kind", ["keyValue", "timestampedKeyValue", "versionedKeyValue", "joinBuffer"])
def test_other_entries_do_not_depend_on_the_retention(kind: str) -> None:
    assert layout(kind, retention_ms=HOUR) == layout(kind, retention_ms=2 * HOUR)


def test_kinds_have_layouts_of_their_own() -> None:
    kinds = ["keyValue", "timestampedKeyValue", "versionedKeyValue", "list", "suppress", "subscription"]
    assert len({layout(kind) for kind in kinds}) == len(kinds)
    assert layout("window", retain_duplicates=True) != layout("window")
    assert layout("keyValue", caching=True, in_memory=True) == layout("keyValue")


def test_global_stores_have_no_local_state() -> None:
    program: Any = Program((StateStore("s", ChangelogKind.KEY_VALUE, is_global=True),))
    assert store_layouts(program) == {}


def test_stores_with_another_known_layout_are_restored() -> None:
    known, present = {"a": "1", "b": "1", "removed": "1"}, {"a": "1", "b": "2", "added": "2"}
    assert stores_to_restore(known, present) == ("b",)
    assert stores_to_restore({}, present) == ()
