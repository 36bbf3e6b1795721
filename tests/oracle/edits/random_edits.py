"""Random edits of random topologies: what a developer may do to a document between two releases."""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from tests.oracle.random_topologies.generator import Generator
from tests.oracle.random_topologies.sources import Handle
from tests.oracle.random_topologies.stores import Choices

Json = dict[str, Any]
_STATELESS = ("filter", "mapValues", "peek", "filterNot", "selectKey", "map", "flatMapValues")
_ON_TABLES = ("filter", "mapValues")
_WINDOWS: tuple[Json, ...] = (
    {"tumbling": {"size": 10_000}},
    {"tumbling": {"size": "1h", "grace": "5m"}},
    {"hopping": {"size": 60_000, "advance": 20_000, "grace": 1}},
    {"sliding": {"difference": 30_000, "grace": 2000}},
    {"session": {"gap": 5000, "grace": 1000}},
)
_JOIN_WINDOWS: tuple[Json, ...] = ({"difference": 5000}, {"difference": "10s", "grace": "3s"})
_NAMED = ("filter", "mapValues", "groupBy", "groupByKey", "repartition", "join", "leftJoin", "count", "map")
_AGGREGATIONS = ("count", "reduce", "aggregate")
_OPTIMIZATIONS = (None, "all", "reuse.ktable.source.topics", "merge.repartition.topics")


@attrs.frozen
class RandomEdit:
    """A document before and after an edit, the partition counts of its topics, and the kinds of changes."""

    before: Json
    after: Json
    partitions: Mapping[str, int]
    kinds: tuple[str, ...]


def random_edit(choices: Choices, id_: str) -> RandomEdit:
    """Return an edit of a random topology; its topics begin with `id_` and a dot."""
    return RandomEditor(choices, id_).edit()


class RandomEditor:
    """Edits a random topology several times; its topics begin with `id_` and a dot."""

    def __init__(self, choices: Choices, id_: str) -> None:
        focus = choices.number(100)
        generator = Generator(choices, only_tables=focus >= 94, only_repartitions=84 <= focus < 94)
        document = generator.document(2 + choices.number(9))
        counts = {topic: 1 + count % 3 for topic, count in generator.partitions().items()}
        self._choices = choices
        self._editor = Editor(choices, _runnable(document, id_), generator.handles)
        self.partitions = {f"{id_}.{topic}": count for topic, count in counts.items()}

    @property
    def document(self) -> Json:
        """The document to edit next: the first one, or what a test has chosen of the last edit."""
        return self._editor.document

    @document.setter
    def document(self, document: Json) -> None:
        self._editor.document = copy.deepcopy(document)

    def edit(self) -> RandomEdit:
        """Return the document, and a copy with one to three changes, which is the document afterwards."""
        before = copy.deepcopy(self.document)
        kinds = tuple(self._editor.change() for _ in range(1 + self._choices.number(3)))
        return RandomEdit(before, copy.deepcopy(self.document), self.partitions, kinds)


def _runnable(document: Json, id_: str) -> Json:
    """Return the document with its own topics, without settings that one broker does not accept."""
    config = {
        key: value
        for key, value in document["application"].get("config", {}).items()
        if key == "topology.optimization"
    }
    steps = [_own(step, id_) for step in document["topology"]]
    return {"application": {"id": id_, "config": config}, "topology": steps}


def _own(value: Any, id_: str) -> Any:  # noqa: ANN401 - a value of JSON
    if isinstance(value, list):
        return [_own(each, id_) for each in value]
    if not isinstance(value, dict):
        return value
    own: Json = {}
    for key, each in value.items():
        if key in ("topic", "pattern") and isinstance(each, str):
            own[key] = f"{id_}.{each}"
        elif key == "topics":
            own[key] = [f"{id_}.{topic}" for topic in each]
        elif key == "logging" and isinstance(each, dict):
            own[key] = True
        elif key not in ("offsetReset", "serdes"):
            own[key] = _own(each, id_)
    return own


@attrs.define
class Editor:
    """Changes a document step by step; `handles` are the handles of the generator."""

    choices: Choices
    document: Json
    handles: list[Handle]
    serial: int = 0

    @property
    def steps(self) -> list[Json]:
        steps: list[Json] = self.document["topology"]
        return steps

    def change(self) -> str:
        """Make one change, and return its kind; `nothing` if the chosen kind fits nowhere."""
        changes: tuple[Callable[[], bool], ...] = (
            self.insert,
            self.insert,
            self.add_aggregation,
            self.remove,
            self.reorder,
            self.name,
            self.rename_store,
            self.change_type,
            self.change_window,
            self.change_join,
            self.change_count,
            self.change_optimization,
            self.change_offset_reset,
            self.remove_names,
        )
        chosen = self.choices.pick(changes)
        return chosen.__name__ if chosen() else "nothing"

    def insert(self) -> bool:
        """Insert a stateless operator before some of the calls on a stream or table."""
        usable = [
            handle for handle in self.handles if handle.kind in ("stream", "table") and not handle.versioned
        ]
        if not usable:
            return False
        handle = self.choices.pick(usable)
        position = self._position(handle.alias)
        if position is None:
            return False
        operator = self.choices.pick(_STATELESS if handle.kind == "stream" else _ON_TABLES)
        alias = self._fresh("i")
        is_at_end = self.choices.chance(30)
        if not is_at_end:
            for step in self.steps[position + 1 :]:
                options = _options(step)
                if options.get("from") == handle.alias and self.choices.chance(80):
                    options["from"] = alias
        new: Json = {operator: {"from": handle.alias, "as": alias}}
        self.steps.insert(len(self.steps) if is_at_end else position + 1, new)
        return True

    def add_aggregation(self) -> bool:
        """Add a count or reduce on a stream, with or without a name, somewhere or at the end."""
        usable = [handle for handle in self.handles if handle.kind == "stream"]
        if not usable:
            return False
        handle = self.choices.pick(usable)
        position = self._position(handle.alias)
        if position is None:
            return False
        grouped = self._fresh("g")
        named = {"materialized": self._fresh("added")} if self.choices.chance(40) else {}
        at = len(self.steps) if self.choices.chance(40) else position + 1
        self.steps[at:at] = [
            {self.choices.pick(("groupByKey", "groupBy")): {"from": handle.alias, "as": grouped}},
            {self.choices.pick(("count", "reduce")): {"from": grouped, "as": self._fresh("c"), **named}},
        ]
        return True

    def remove(self) -> bool:
        """Remove a call that nothing uses, or a stateless call from the middle of a chain."""
        used = set(_used(self.steps))
        candidates = []
        for number, step in enumerate(self.steps):
            ((operator, _),) = step.items()
            alias = _options(step).get("as")
            is_unused = alias not in used and operator not in ("split", "addStateStore", "windowedBy")
            is_stateless = operator in ("filter", "filterNot", "mapValues", "peek") and alias is not None
            if "from" in _options(step) and (is_unused or is_stateless):
                candidates.append(number)
        if not candidates:
            return False
        number = self.choices.pick(candidates)
        options = _options(self.steps[number])
        if options.get("as") in used:
            for step in self.steps[number + 1 :]:
                _replace(step, options["as"], options["from"])
        del self.steps[number]
        return True

    def reorder(self) -> bool:
        """Swap two neighboring calls that do not use each other."""
        pairs = [
            number
            for number in range(len(self.steps) - 1)
            if all("as" in _options(step) for step in self.steps[number : number + 2])
            and _options(self.steps[number])["as"] not in set(_used(self.steps[number + 1 : number + 2]))
        ]
        if not pairs:
            return False
        number = self.choices.pick(pairs)
        self.steps[number], self.steps[number + 1] = self.steps[number + 1], self.steps[number]
        return True

    def name(self) -> bool:
        """Name an operator or a store that has no name."""
        unnamed = [step for step in self.steps if next(iter(step)) in _NAMED and "name" not in _options(step)]
        if not unnamed:
            return False
        step = self.choices.pick(unnamed)
        options = _options(step)
        if next(iter(step)) in _AGGREGATIONS and not options.get("materialized"):
            options["materialized"] = self._fresh("named")
        else:
            options["name"] = self._fresh("named")
        return True

    def rename_store(self) -> bool:
        named = [step for step in self.steps if isinstance(_options(step).get("materialized"), str)]
        if not named:
            return False
        _options(self.choices.pick(named))["materialized"] = self._fresh("renamed")
        return True

    def remove_names(self) -> bool:
        named = [step for step in self.steps if "name" in _options(step)]
        if not named:
            return False
        del _options(self.choices.pick(named))["name"]
        return True

    def change_type(self) -> bool:
        """Replace an aggregation or a stateless operator by another one."""
        groups = (_AGGREGATIONS, ("filter", "filterNot"), ("join", "leftJoin"))
        changeable = [
            (step, group)
            for step in self.steps
            for group in groups
            if next(iter(step)) in group and "foreignKey" not in _options(step)
        ]
        if not changeable:
            return False
        step, group = self.choices.pick(changeable)
        old = next(iter(step))
        step[self.choices.pick([each for each in group if each != old])] = step.pop(old)
        return True

    def change_window(self) -> bool:
        windowed = [step for step in self.steps if "windowedBy" in step]
        if not windowed:
            grouped = [handle for handle in self.handles if handle.kind == "grouped"]
            return bool(grouped) and self._add_window(self.choices.pick(grouped))
        step = self.choices.pick(windowed)
        kept = {key: value for key, value in _options(step).items() if key in ("from", "as")}
        step["windowedBy"] = {**kept, **self.choices.pick(_WINDOWS)}
        return True

    def _add_window(self, grouped: Handle) -> bool:
        position = self._position(grouped.alias)
        if position is None:
            return False
        alias = self._fresh("w")
        for step in self.steps[position + 1 :]:
            if next(iter(step)) in _AGGREGATIONS and _options(step).get("from") == grouped.alias:
                _options(step)["from"] = alias
        self.steps.insert(
            position + 1, {"windowedBy": {"from": grouped.alias, "as": alias, **self.choices.pick(_WINDOWS)}}
        )
        return True

    def change_join(self) -> bool:
        joins = [step for step in self.steps if "window" in _options(step)]
        if not joins:
            return False
        options = _options(self.choices.pick(joins))
        if "thisStore" in options or "otherStore" in options:
            return False
        options["window"] = dict(self.choices.pick(_JOIN_WINDOWS))
        return True

    def change_count(self) -> bool:
        repartitions = [step for step in self.steps if "repartition" in step]
        if not repartitions:
            streams = [handle for handle in self.handles if handle.kind == "stream"]
            if not streams:
                return False
            handle = self.choices.pick(streams)
            position = self._position(handle.alias)
            if position is None:
                return False
            alias = self._fresh("r")
            for step in self.steps[position + 1 :]:
                if _options(step).get("from") == handle.alias:
                    _options(step)["from"] = alias
            options: Json = {"from": handle.alias, "as": alias, "partitions": 1 + self.choices.number(3)}
            self.steps.insert(position + 1, {"repartition": options})
            return True
        options = _options(self.choices.pick(repartitions))
        options["partitions"] = 1 + (options.get("partitions", 0) + self.choices.number(2)) % 3
        return True

    def change_optimization(self) -> bool:
        config = self.document["application"]["config"]
        chosen = self.choices.pick(_OPTIMIZATIONS)
        if chosen is None:
            config.pop("topology.optimization", None)
        else:
            config["topology.optimization"] = chosen
        return True

    def change_offset_reset(self) -> bool:
        sources = [step for step in self.steps if next(iter(step)) in ("stream", "table")]
        if not sources:
            return False
        options = _options(self.choices.pick(sources))
        if options.pop("offsetReset", None) is None:
            options["offsetReset"] = self.choices.pick(("earliest", "latest"))
        return True

    def _position(self, alias: str) -> int | None:
        return next(
            (number for number, step in enumerate(self.steps) if _options(step).get("as") == alias), None
        )

    def _fresh(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}-e{self.serial}"


def _options(step: Json) -> Json:
    ((operator, options),) = step.items()
    if options is None:
        step[operator] = options = {}
    found: Json = options
    return found


def _used(steps: list[Json]) -> Iterator[str]:
    for step in steps:
        for key in ("from", "with"):
            if (alias := _options(step).get(key)) is not None:
                yield str(alias)


def _replace(step: Json, old: str, new: str) -> None:
    options = _options(step)
    for key in ("from", "with"):
        if options.get(key) == old:
            options[key] = new
