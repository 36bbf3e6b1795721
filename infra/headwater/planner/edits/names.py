"""Names that keep internal topics: found by compiling the document with them, until no topic is lost.

A name of its own changes what a store is called, and also which indices are generated after it. So lines are
tried all together, and names that the lines themselves shift get lines, too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.compiler.renumbering import keep_name
from headwater.model.compiled import TopicKind
from headwater.model.operators import (
    Aggregate,
    Branch,
    Count,
    Join,
    Operator,
    ReadTable,
    Reduce,
    Repartition,
    Split,
    Step,
    ToTable,
    Transform,
    TransformValues,
)
from headwater.model.problems import Location, errors
from headwater.model.stores import Materialized
from headwater.model.topology import TopologyDocument
from headwater.planner.edits.matching import Sides
from headwater.planner.edits.topologies import Topology
from headwater.planner.edits.values import DRAIN, NameLine, TopicEdit, Verdict
from headwater.planner.edits.verdicts import keep_id, topic_edits

_MATERIALIZING = (Aggregate, Count, ReadTable, Reduce, ToTable, Transform, TransformValues, Join)
_RESULTS = ("timestampedKeyValue", "versionedKeyValue", "timestampedWindow", "session")
"""Stores of results; `Materialized` does not name the other stores of a call, such as buffers."""
_MOST_ROUNDS = 12
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_GENERATED = re.compile(r"\d{10}")
"""The number in names that Kafka Streams generates; other names are given by a user."""
_NO_NAME = (
    "No name that you can give keeps the name of this topic: undo the part of the edit that shifts it, or "
    "declare new operators after all others."
)
_COPY_STATE = (
    "Otherwise stop the application and copy the state (`headwater state copy`), or continue without the old "
    "state."
)
Names = Mapping[Location, NameLine]


def lines_to_keep(
    sides: Sides, edits: Iterable[TopicEdit], compile_with: Callable[[TopologyDocument], Topology]
) -> tuple[tuple[NameLine, ...], tuple[str, ...]]:
    """Return lines that keep topics, and the old topics that change nevertheless.

    The lines are checked: the document with all of them was compiled, and compared again. It loses no topic
    that the document without them keeps.
    """

    def lost_with(names: Names) -> list[TopicEdit] | None:
        """Return the edits that lose topics with these lines, None if the document has errors with them."""
        tried = compile_with(with_names(sides.after.document, names))
        if errors(tried.compiled.problems):
            return None
        return _lost_edits(topic_edits(attrs.evolve(sides, after=tried)))

    first = _lost_edits(edits)
    names = _names_for_all(sides, first, lost_with)
    lost = lost_with(names) if names else first
    allowed = {edit.former for edit in first}
    while names:
        formers = {edit.former for edit in lost or ()}
        useless = [at for at, line in names.items() if line.topic in formers]
        if lost is not None and not useless and formers <= allowed:
            break
        # A line has no effect, is refused, or shifts a name that no line can keep: leave it out.
        for at in useless or [max(names, key=_position_of)]:
            del names[at]
        lost = lost_with(names) if names else first
    lines = tuple(names[at] for at in sorted(names, key=_position_of))
    return lines, tuple(sorted({str(edit.former) for edit in (first if lost is None else lost)}))


def _names_for_all(
    sides: Sides, lost: Iterable[TopicEdit], lost_with: Callable[[Names], list[TopicEdit] | None]
) -> dict[Location, NameLine]:
    """Return lines for all topics that can be named, also for topics that other lines shift."""
    names: dict[Location, NameLine] = {}
    refused: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        found = {
            line.location: line
            for edit in lost
            if edit.former not in refused
            if (line := _line_for(sides, edit)) is not None and line.location is not None
            if line.location not in names
        }
        if not found:
            break
        names |= found
        remaining = lost_with(names)
        while remaining is None and found:
            # Another operator has the name, or the call cannot have one: give up the last line.
            location, line = found.popitem()
            refused.add(line.topic)
            del names[location]
            remaining = lost_with(names)
        lost = remaining or ()
    return names


def _position_of(at: Location) -> tuple[str, int, int, str]:
    return at.file, at.line, at.column, at.pointer


def with_instruction(
    sides: Sides, edit: TopicEdit, lines: Sequence[NameLine], still_lost: Sequence[str]
) -> TopicEdit:
    """Return the edit with what its user should do about the name, now that the lines are known."""
    if edit not in _lost_edits([edit]):
        return edit
    is_store = edit.kind is TopicKind.CHANGELOG
    if edit.former is not None and sides.before.short_name(edit.former) == sides.after.short_name(edit.topic):
        return attrs.evolve(edit, first=keep_id(is_store=is_store))
    given = sides.before.short_name(str(edit.former))
    if edit.verdict is Verdict.RENAMED and not _GENERATED.search(given):
        return attrs.evolve(edit, first=_first_of_given_name(sides, edit, given))
    if not sides.after.document.has_calls:
        named = keep_name(given, edit.kind)
        return attrs.evolve(edit, first=f"{named or _NO_NAME} {'' if is_store else DRAIN}".rstrip())
    if edit.former in still_lost:
        return attrs.evolve(edit, first=f"{_NO_NAME} {_other_advice(sides, edit) if is_store else DRAIN}")
    line = next((each for each in lines if each.topic == edit.former), None)
    how = f"Set `{line.document}` at {line.location}" if line is not None else "Set the lines below"
    more = ", together with the other lines" if line is not None and len(lines) > 1 else ""
    otherwise = "" if is_store else f" Otherwise: {DRAIN[0].lower()}{DRAIN[1:]}"
    return attrs.evolve(edit, first=f"{how}{more}, or undo the part of the edit that shifts it.{otherwise}")


def _first_of_given_name(sides: Sides, edit: TopicEdit, former: str) -> str:
    """Return what to do if a user has renamed an operator or a store: no number was shifted."""
    if edit.kind is not TopicKind.CHANGELOG:
        name = former.removesuffix("-repartition")
        return f"Name the operator exactly `{name}` again. Otherwise: {DRAIN[0].lower()}{DRAIN[1:]}"
    again = f"Name the store exactly `{former.removesuffix('-changelog')}` again"
    copy = copied_store(sides, edit)
    if copy is None:
        return f"{again}, or continue without the old state."
    return f"{again}. Or keep the new name, and copy the state while all instances are stopped: {copy}."


def copied_store(sides: Sides, edit: TopicEdit) -> str | None:
    """Return the command that copies the state of a renamed store; None if no command can."""
    is_free = edit.verdict is Verdict.RENAMED and edit.former not in sides.after.topics
    if edit.kind is not TopicKind.CHANGELOG or not is_free or sides.before.id != sides.after.id:
        return None
    old, new = (
        side.short_name(str(topic)).removesuffix("-changelog")
        for side, topic in ((sides.before, edit.former), (sides.after, edit.topic))
    )
    return f"`headwater state copy DOCUMENT --store {old}={new} --bootstrap-server BROKER`"


def _other_advice(sides: Sides, edit: TopicEdit) -> str:
    """Return what else can be done about the state of a store: it is not copied from a topic that is used."""
    if edit.verdict is Verdict.RENAMED and edit.former not in sides.after.topics:
        return _COPY_STATE
    return "Otherwise continue without the old state."


def _lost_edits(edits: Iterable[TopicEdit]) -> list[TopicEdit]:
    """Return the edits of topics whose data another name would keep."""
    return [
        edit
        for edit in edits
        if edit.former is not None
        and (edit.verdict is Verdict.RENAMED or (edit.verdict is Verdict.RESET and edit.loses_data))
    ]


def _line_for(sides: Sides, edit: TopicEdit) -> NameLine | None:
    """Return the line at the call that creates the topic, None if no name gives it the former one."""
    step = next((each for each in _all_steps(sides.after.document.steps) if each.at == edit.location), None)
    if step is None or edit.former not in sides.before.topics:
        return None
    former, operator = sides.before.short_name(str(edit.former)), step.operator
    if edit.kind is TopicKind.CHANGELOG:
        store = former.removesuffix("-changelog")
        if not _can_name_store(operator) or not _is_result(sides, str(edit.store)):
            return None
        return NameLine(
            str(edit.former),
            f"materialized: {_store_text(getattr(operator, 'materialized', None), _yaml_text(store))}",
            f'Materialized.as("{store}")',
            step.at,
        )
    if edit.kind is TopicKind.REPARTITION and former.endswith("-repartition"):
        return _repartition_line(str(edit.former), former.removesuffix("-repartition"), step)
    return None


def _store_text(given: Materialized | None, store: str) -> str:
    """Return the value of `materialized` with another name, short where only the name is set."""
    if given is None or given == Materialized(store=given.store):
        return store
    return (
        f"{{supplier: {{name: {store}, …}}, …}}" if given.supplier is not None else f"{{store: {store}, …}}"
    )


def _yaml_text(name: str) -> str:
    """Return a name as YAML, in quotes if it could be read as a number or a word such as `null`."""
    is_plain = _PLAIN.fullmatch(name) is not None and name.lower() not in _WORDS
    return name if is_plain else f'"{name}"'


def _is_result(sides: Sides, store: str) -> bool:
    layout = sides.after.store_layouts.get(store)
    # Compared with a text, the kind is not known: lines without an effect are left out.
    return layout is not None and (layout.kind in _RESULTS or not layout.is_known)


def _can_name_store(operator: Operator) -> bool:
    return isinstance(operator, _MATERIALIZING) and (
        not isinstance(operator, Join) or operator.window is None
    )


def _repartition_line(topic: str, name: str, step: Step) -> NameLine | None:
    operator, line = step.operator, f"name: {_yaml_text(name)}"
    if isinstance(operator, Repartition):
        return NameLine(topic, line, f'Repartitioned.as("{name}")', step.at)
    if isinstance(operator, ToTable):
        return NameLine(topic, line, f'Named.as("{name}")', step.at)
    if isinstance(operator, Join) and operator.window is None:
        return NameLine(topic, line, f'Joined.as("{name}")', step.at)
    return None


def _all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step.operator, Split):
            for branch in _all_branches(step.operator):
                yield from _all_steps(branch.then)


def _all_branches(split: Split) -> tuple[Branch, ...]:
    return (*split.branches, *((split.default,) if split.default is not None else ()))


def with_names(document: TopologyDocument, names: Names) -> TopologyDocument:
    """Return the document with the lines in the calls at their locations."""
    return attrs.evolve(document, steps=_named_steps(document.steps, names))


def _named_steps(steps: Sequence[Step], names: Names) -> tuple[Step, ...]:
    return tuple(_named_step(step, names) for step in steps)


def _named_step(step: Step, names: Names) -> Step:
    operator = step.operator
    if isinstance(operator, Split):
        default = operator.default
        return attrs.evolve(
            step,
            operator=attrs.evolve(
                operator,
                branches=tuple(_named_branch(each, names) for each in operator.branches),
                default=default if default is None else _named_branch(default, names),
            ),
        )
    line = names.get(step.at)
    if line is None:
        return step
    key, _, _ = line.document.partition(":")
    if key == "materialized":
        given: Materialized | None = getattr(operator, "materialized", None)
        named = _with_store(given or Materialized(), line.code.split('"')[1])
        return attrs.evolve(step, operator=attrs.evolve(operator, materialized=named))  # type: ignore[call-arg]
    return attrs.evolve(step, operator=attrs.evolve(operator, name=line.code.split('"')[1]))  # type: ignore[call-arg]


def _with_store(given: Materialized, store: str) -> Materialized:
    if given.supplier is not None:
        return attrs.evolve(given, supplier=attrs.evolve(given.supplier, name=store))
    return attrs.evolve(given, store=store)


def _named_branch(branch: Branch, names: Names) -> Branch:
    return attrs.evolve(branch, then=_named_steps(branch.then, names))
