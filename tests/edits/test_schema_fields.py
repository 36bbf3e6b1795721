"""Each field of a document that has another value is in the report of the edit, or has no effect."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import attrs
import pytest

from headwater.model.problems import errors
from headwater.planner.document_settings import topology_content
from headwater.planner.edits import ApplicationEdit, Topologies, compile_topologies, find_edit
from headwater.spec import parse_document
from tests.yaml_text import load_yaml

Json = Any
SCHEMA: Mapping[str, Any] = json.loads(
    files("topology_schemas").joinpath("topology.v1.schema.json").read_text("utf-8")
)
_SECTIONS = ("application", "topics", "acls", "leftovers", "topology")
_DURATIONS = ("7m", "20m", "90s")
_TEXTS = ("other", "value.other", "shop.other:Other")


@attrs.frozen
class Field:
    """A field of the schema, such as `table.topic` and `materialized.caching`; `node` is its schema."""

    name: str
    node: Mapping[str, Any]


@attrs.frozen
class Change:
    """Another value of one field of a document, or a new field: `key` below `path`."""

    field: str
    original: Json
    path: tuple[Any, ...]
    key: str
    before: Json
    after: Json

    def document(self) -> Json:
        """Return a copy of the document with the other value."""
        changed = copy.deepcopy(self.original)
        if _at(changed, self.path) is None:
            _at(changed, self.path[:-1])[self.path[-1]] = {}
        _at(changed, self.path)[self.key] = self.after
        return changed


def fields() -> Mapping[str, Field]:
    """Return all fields of the application and of the operators, by name; parts of steps in steps once."""
    found: dict[str, Field] = {}
    for section in _SECTIONS[:-1]:
        found |= {field.name: field for field in _below(section, SCHEMA["properties"][section])}
    for operator, node in _resolved(SCHEMA["$defs"]["step"])["properties"].items():
        found |= {field.name: field for field in _below(operator, node)}
    return found


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        node = {
            **SCHEMA["$defs"][node["$ref"].rpartition("/")[2]],
            **{k: v for k, v in node.items() if k != "$ref"},
        }
    return node


def _named(name: str, node: Mapping[str, Any]) -> str:
    """Return what the names of fields below a node begin with: the name of its definition, if it has one."""
    return node["$ref"].rpartition("/")[2].removeprefix("op.") if "$ref" in node else name


def _below(name: str, node: Mapping[str, Any]) -> Iterator[Field]:
    """Yield the fields below a node; of a list, and of a mapping with any keys, the fields of the items."""
    name, node = _named(name, node), _resolved(node)
    for key, value in node.get("properties", {}).items():
        part = _resolved(value)
        if part.get("title") == "steps":
            continue
        yield Field(f"{name}.{key}", part)
        yield from _below(f"{name}.{key}", value)
    for items in (node.get("items"), node.get("additionalProperties")):
        if isinstance(items, Mapping):
            yield from _below(name, items)


def changes(document: Json) -> Iterator[Change]:
    """Yield changes of a document, each of one field; not all of them are valid."""
    for section in _SECTIONS[:-1]:
        if section in document:
            yield from _changes_below(document, (section,), section, SCHEMA["properties"][section])
    for path in _steps(document["topology"], ("topology",)):
        ((operator, options),) = _at(document, path).items()
        if isinstance(options, Mapping) or options is None:
            yield from _changes_below(
                document, (*path, operator), operator, SCHEMA["$defs"][f"op.{operator}"]
            )


def _steps(steps: Sequence[Json], path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for number, step in enumerate(steps):
        yield (*path, number)
        ((operator, options),) = step.items()
        for index, branch in enumerate(options.get("branches", ()) if isinstance(options, Mapping) else ()):
            yield from _steps(branch.get("then", ()), (*path, number, operator, "branches", index, "then"))


def _at(document: Json, path: Sequence[Any]) -> Json:
    for key in path:
        document = document[key]
    return document


def _changes_below(
    document: Json, path: tuple[Any, ...], name: str, node: Mapping[str, Any]
) -> Iterator[Change]:
    name, node, value = _named(name, node), _resolved(node), _at(document, path)
    if isinstance(value, list):
        items = node.get("items", {})
        for number in range(len(value)):
            yield from _changes_below(document, (*path, number), name, items)
        return
    if not isinstance(value, Mapping) and value is not None:
        return
    known = node.get("properties", {})
    for key, part in known.items():
        if _resolved(part).get("title") == "steps":
            continue
        before = (value or {}).get(key)
        others = tuple(_other_names(document["topology"], key))
        for candidate in (*_candidates(_resolved(part), before), *others):
            if candidate != before:
                yield Change(f"{name}.{key}", document, path, key, before, candidate)
        if before is not None:
            yield from _changes_below(document, (*path, key), f"{name}.{key}", part)
    more = node.get("additionalProperties")
    if isinstance(more, Mapping):
        for key in (value or {}).keys() - known.keys():
            yield from _changes_below(document, (*path, key), name, more)


def _other_names(steps: Json, key: str) -> Iterator[Json]:
    """Yield what a field that names other calls can have: handles, or names of processors and stores."""
    options = [each for step in steps for each in step.values() if isinstance(each, Mapping)]
    if key in ("from", "with"):
        yield from (each["as"] for each in options if "as" in each)
    elif key in ("parents", "processors", "stores"):
        yield from ([each["name"]] for each in options if "name" in each)
    elif key == "processor":
        yield from (each["name"] for each in options if "name" in each)


def _candidates(node: Mapping[str, Any], before: Json) -> Iterator[Json]:
    """Yield other values that the schema allows, and the examples of the schema."""
    if isinstance(before, bool):
        yield not before
    elif isinstance(before, int):
        yield from (before + 1, before * 2)
    elif isinstance(before, list):
        yield from (before[:-1] or ["other"], [*before, "other"])
    yield from node.get("enum", ())
    yield from node.get("examples", ())
    types = node.get("type", ())
    types = (types,) if isinstance(types, str) else types
    if "boolean" in types:
        yield from (True, False)
    if "integer" in types and not isinstance(before, int):
        yield from (1, 2, 4)
    if "string" in types:
        yield from (_DURATIONS if node.get("title") == "duration" else _TEXTS)


_PARTITIONS = 4
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
    if missing := {topic for each in found.by_id.values() for topic in each.compiled.missing_sources}:
        found = compile_topologies(loaded.documents, {**counts, **dict.fromkeys(missing, _PARTITIONS)})
    return None if any(errors(each.compiled.problems) for each in found.by_id.values()) else found


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
        for each in side.by_id.values()
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
@pytest.mark.parametrize("trials", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_each_field_of_the_schema_is_in_the_report(trials: int) -> None:
    """Each field gets this many other values that are valid."""
    edited: dict[str, int] = {}
    silent: list[Change] = []
    for document in _documents():
        before = _compiled(document, {})
        assert before is not None, document["application"]
        for change in changes(document):
            if edited.get(change.field, 0) == trials:
                continue
            after = _compiled(change.document(), before.partitions)
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
