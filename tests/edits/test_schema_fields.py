"""Each field of a document that has another value is in the report of the edit, or has no effect."""

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import pytest

from headwater.model.problems import errors
from headwater.planner.document_settings import topology_content
from headwater.planner.edits import ApplicationEdit, Topologies, compile_topologies, find_edit
from headwater.spec import parse_document
from tests.edits.schema_fields import Change, changes, fields
from tests.yaml_text import load_yaml

_PARTITIONS, _TRIALS = 4, 2
_EXAMPLES = files("topology_schemas").joinpath("examples")
_MORE = """
application: {id: app, setup: {timeout: 2m}, config: {internal.topics.setup: manual}}
leftovers: {retire: [app-old-changelog], delete: [app-older-changelog], keep: [app-kept-changelog]}
topology:
  - addSource: {name: source, topics: [in]}
  - addProcessor: {name: first, parents: [source]}
  - addProcessor: {name: second, parents: [source]}
  - addStateStore: {name: counts, processors: [first]}
  - addStateStore: {name: totals}
  - connectProcessorAndStateStores: {processor: second, stores: [totals]}
  - connectProcessorAndStateStores: {processor: first, stores: [totals]}
  - addSink: {name: sink, parents: [first, second], topic: out}
  - stream: {topic: clicks, as: clicks}
  - groupByKey: {as: groups}
  - windowedBy: {from: groups, sliding: {difference: 1m}, as: windows}
  - count: {from: windows, as: counted}
  - suppress: {from: counted, until: timeLimit, timeLimit: 10s}
  - table: {topic: table, as: table}
  - toStream: {from: table, as: rows}
  - table: {topic: unused, as: unused}
  - filter: {from: counted, as: filtered}
  - suppress: {from: filtered, until: timeLimit, timeLimit: 5s}
  - addStateStore: {name: more}
  - processValues: {from: clicks, class: "shop:Values", stores: [more]}
  - map: {from: clicks, as: pairs}
  - flatMap: {from: clicks, as: many}
  - flatMapValues: {from: clicks, as: values}
  - globalTable: {topic: countries, as: countries}
  - toTable: {from: clicks}
"""
_DIFFERENT_PARTS = {
    *("addProcessor.name", "addSource.name", "addReadOnlyStateStore.store"),
    *("join.thisStore", "join.otherStore", "leftJoin.thisStore", "leftJoin.otherStore"),
    *("joinStoreSupplier.retention", "joinStoreSupplier.windowSize", "outerJoin.window"),
    *("leftJoin.key", "leftJoin.grace", "windowedBy.unlimited"),
    *("split.default", "split.default.as", "suppress.until"),
}
"""The fields that cannot have another value alone: another part of the document names or requires it."""


def _compiled(document: Any, counts: Mapping[str, int]) -> Topologies | None:  # noqa: ANN401 - a value of JSON
    """Compile a document on a cluster with the topics `counts`, and with all other topics that it reads."""
    loaded = parse_document(document)
    if errors(loaded.problems):
        return None
    found = compile_topologies(loaded.documents, counts)
    if missing := {topic for each in found.of.values() for topic in each.compiled.missing_sources}:
        found = compile_topologies(loaded.documents, {**counts, **dict.fromkeys(missing, _PARTITIONS)})
    return None if any(errors(each.compiled.problems) for each in found.of.values()) else found


def _documents() -> Iterator[Any]:
    paths = (path for folder in (_EXAMPLES, _EXAMPLES.joinpath("features")) for path in folder.iterdir())
    texts = [path.read_text("utf-8") for path in paths if path.name.endswith(".yaml")]
    # Short ones first, in the same order everywhere: the first trials of a field are the only ones.
    ordered = sorted((*texts, _MORE), key=lambda text: (len(text), text))
    yield from (load_yaml(text) for text in ordered if "\ntopology:" in text)


def _is_same(before: Topologies, after: Topologies) -> bool:
    """Return whether both documents say the same: a handle, or a default that is written out."""
    old, new = (
        (topology_content(each.document), each.application, each.document.sinks)
        for side in (before, after)
        for each in side.of.values()
    )
    return old == new


def _mentions(found: ApplicationEdit) -> bool:
    return bool(
        found.operators
        or found.settings
        or found.obstacle
        or found.former_id
        or found.before != found.after
        or not all(topic.is_unchanged for topic in found.topics)
        or any("The topology was edited" in remark or "names a version" in remark for remark in found.remarks)
    )


@pytest.mark.slow
def test_each_field_of_the_schema_is_in_the_report() -> None:
    edited: dict[str, int] = {}
    silent: list[Change] = []
    for document in _documents():
        before = _compiled(document, {})
        assert before is not None, document["application"]
        for change in changes(document):
            if edited.get(change.field, 0) == _TRIALS:
                continue
            after = _compiled(change.document, before.partitions)
            if after is None:
                continue
            edited[change.field] = edited.get(change.field, 0) + 1
            found = find_edit(before, after)
            is_listed = found.added or found.removed or any(map(_mentions, found.applications))
            if not is_listed and not _is_same(before, after):
                silent.append(change)
    assert not silent, [(change.field, change.before, change.after) for change in silent]
    missing = fields().keys() - edited.keys()
    assert missing == _DIFFERENT_PARTS, (missing - _DIFFERENT_PARTS, _DIFFERENT_PARTS - missing)
    assert edited.keys() <= fields().keys()
