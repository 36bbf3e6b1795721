"""Groups the lines of a text into descriptions, sub-topologies and nodes."""

from collections.abc import Iterable

import attrs

from headwater.describe.lines import Line, LineKind
from headwater.describe.problems import TextProblems


@attrs.define
class RawNode:
    """The line of a node with the lines of its two lists; None = missing."""

    line: Line
    children: Line | None = None
    parents: Line | None = None


@attrs.define
class Block:
    """A sub-topology of the text."""

    id: int
    line: int
    is_global: bool
    nodes: list[RawNode] = attrs.field(factory=list)


@attrs.define
class Description:
    """A topology of the text; `name` is that of a named topology."""

    problems: TextProblems
    name: str | None = None
    line: int = 0
    blocks: list[Block] = attrs.field(factory=list)


def split(found: Iterable[Line], file: str) -> list[Description]:
    """Return the descriptions in these lines; one without a sub-topology only if there is no other."""
    descriptions: list[Description] = []
    for line in found:
        if line.kind is LineKind.TOPOLOGY:
            descriptions.append(Description(TextProblems(file), line.name or None, line.number))
            continue
        if not descriptions or (line.kind is LineKind.SUBTOPOLOGY and _starts_over(line, descriptions[-1])):
            descriptions.append(Description(TextProblems(file), line=line.number))
        _take(line, descriptions[-1])
    return [each for each in descriptions if each.blocks or each.problems.found] or descriptions[:1]


def _starts_over(line: Line, description: Description) -> bool:
    return line.name == "0" and bool(description.blocks) and not line.is_broken


def _take(line: Line, description: Description) -> None:
    problems = description.problems
    if line.is_broken:
        problems.broken(line.number, line.kind)
    elif line.kind is LineKind.SUBTOPOLOGY:
        description.blocks.append(Block(int(line.name), line.number, line.detail == "global"))
    elif not description.blocks:
        _misplaced(line, problems, "a line `Sub-topology: 0` before the first node")
    elif line.kind in {LineKind.SOURCE, LineKind.PROCESSOR, LineKind.SINK}:
        description.blocks[-1].nodes.append(RawNode(line))
    elif not description.blocks[-1].nodes:
        _misplaced(line, problems, "the line of a node before its lists")
    else:
        _take_list(line, description.blocks[-1].nodes[-1], problems)


def _take_list(line: Line, node: RawNode, problems: TextProblems) -> None:
    is_children = line.kind is LineKind.CHILDREN
    if (node.children if is_children else node.parents) is not None:
        _misplaced(line, problems, f"one list of that kind for {node.line.name}")
    elif is_children and node.line.kind is LineKind.SINK:
        _misplaced(line, problems, f"no children of the sink {node.line.name}")
    elif not is_children and node.line.kind is LineKind.SOURCE:
        _misplaced(line, problems, f"no parents of the source {node.line.name}")
    elif is_children:
        node.children = line
    else:
        node.parents = line


def _misplaced(line: Line, problems: TextProblems, expected: str) -> None:
    """Report a line in the wrong position, unless it may be another line of a log."""
    if not line.is_prefixed:
        problems.misplaced(line.number, line.kind, expected)
