"""Converts the blocks of a text to typed nodes and checks that all lists agree."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.describe.blocks import Block, Description, RawNode
from headwater.describe.lines import LineKind
from headwater.describe.problems import TextProblems
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode

_TOPIC_LIST = re.compile(r"\[([\w.\-]+(?:,\s*[\w.\-]+)*)\]", re.ASCII)
"""Other texts after `topics: ` are patterns."""

Lists = tuple[tuple[str, ...], tuple[str, ...]]


class Names:
    """Splits lists of node names, given the names of all nodes of the sub-topology."""

    def __init__(self, names: Iterable[str]) -> None:
        self._known = frozenset(names)
        self._longest = max((name.count(", ") for name in self._known), default=0) + 1

    def in_list(self, text: str) -> tuple[str, ...]:
        """Return the names in an arrow list; names may contain commas, then the longest known one is used."""
        if text == "none":
            return ()
        if self._longest == 1:
            return tuple(part.strip() for part in text.split(","))
        parts = text.split(", ")
        names: list[str] = []
        at = 0
        while at < len(parts):
            sizes = range(min(self._longest, len(parts) - at), 1, -1)
            taken = next((size for size in sizes if ", ".join(parts[at : at + size]) in self._known), 1)
            names.append(", ".join(parts[at : at + taken]).strip())
            at += taken
        return tuple(names)


def topology_of(description: Description) -> NodeTopology:
    """Return the node topology of a description; contradictions are added to its problems."""
    problems = description.problems
    nodes: dict[str, Node] = {}
    listing: dict[str, Lists] = {}
    groups: dict[str, int] = {}
    global_nodes: set[str] = set()
    for block in _in_order(description):
        names = Names(raw.line.name for raw in block.nodes)
        lists = {raw.line.name: _lists(raw, names, problems) for raw in block.nodes}
        _check_block(block, lists, problems)
        for raw in block.nodes:
            if raw.line.name in nodes:
                problems.add(
                    raw.line.number,
                    f"Node {raw.line.name} is listed twice.",
                    "each node once",
                    "a second one",
                    node=raw.line.name,
                )
                continue
            nodes[raw.line.name] = _node(raw, lists[raw.line.name])
            listing[raw.line.name] = lists[raw.line.name]
            groups[raw.line.name] = block.id
        if block.is_global:
            global_nodes |= lists.keys()
    return NodeTopology(
        nodes=tuple(nodes.values()),
        global_nodes=frozenset(global_nodes),
        listing=listing,
        printed_groups=groups,
        name=description.name,
    )


def _in_order(description: Description) -> Iterator[Block]:
    """Return the blocks by id; ids other than 0, 1, 2… mean that text is missing."""
    blocks = sorted(_numbered(description.blocks), key=lambda block: block.id)
    expected = 0
    for block in blocks:
        if block.id != expected:
            description.problems.add(
                block.line,
                f"Sub-topology {block.id} does not follow sub-topology {expected - 1}."
                if expected
                else f"The first sub-topology is {block.id}.",
                f"Sub-topology: {expected}",
                f"Sub-topology: {block.id}",
            )
        expected = block.id + 1
        yield block


def _numbered(blocks: Sequence[Block]) -> Sequence[Block]:
    """Return the blocks, global stores with the free numbers if these are exactly what is missing.

    `kafka-streams-groups.sh` counts global stores from the number of other sub-topologies.
    """
    taken = {block.id for block in blocks if not block.is_global}
    free = [number for number in range(len(blocks)) if number not in taken]
    stores = [block for block in blocks if block.is_global]
    if len(free) != len(stores) or sorted(block.id for block in stores) == free:
        return blocks
    numbers = dict(zip(map(id, stores), free, strict=True))
    return [attrs.evolve(block, id=numbers.get(id(block), block.id)) for block in blocks]


def _lists(raw: RawNode, names: Names, problems: TextProblems) -> Lists:
    kind, name, number = raw.line.kind, raw.line.name, raw.line.number
    if raw.children is None and kind is not LineKind.SINK:
        problems.add(
            number, f"The children of {name} are missing.", "a line `--> …` after it", "none", node=name
        )
    if raw.parents is None and kind is not LineKind.SOURCE:
        problems.add(
            number, f"The parents of {name} are missing.", "a line `<-- …` after it", "none", node=name
        )
    children = names.in_list(raw.children.detail) if raw.children else ()
    parents = names.in_list(raw.parents.detail) if raw.parents else ()
    return children, parents


def _check_block(block: Block, lists: Mapping[str, Lists], problems: TextProblems) -> None:
    number = block.line
    sources = [raw for raw in block.nodes if raw.line.kind is LineKind.SOURCE]
    if not sources:
        problems.add(
            number, f"Sub-topology {block.id} has no source.", "at least one line `Source: …`", "none"
        )
    if block.is_global and (len(sources) != 1 or len(block.nodes) != 2):  # noqa: PLR2004
        problems.add(
            number,
            f"The global store of sub-topology {block.id} is not complete.",
            "one source and one processor",
            f"{len(block.nodes)} nodes",
        )
    links = {(parent, name) for name, (_, parents) in lists.items() for parent in parents}
    claimed = {(name, child) for name, (children, _) in lists.items() for child in children}
    lines = {raw.line.name: raw.line.number for raw in block.nodes}
    for parent, child in sorted((links | claimed) - (links & claimed)):
        _report_link(parent, child, lines, is_claimed=(parent, child) in claimed, problems=problems)


def _report_link(
    parent: str, child: str, lines: Mapping[str, int], *, is_claimed: bool, problems: TextProblems
) -> None:
    where, there = (parent, child) if is_claimed else (child, parent)
    if there not in lines:
        problems.add(
            lines[where],
            f"{where} names {there}, which is not in its sub-topology.",
            f"a line for {there}",
            "none",
            node=where,
        )
    else:
        problems.add(
            lines[there],
            f"{where} names {there}, which does not name it back.",
            f"{where} in the list `{'<--' if is_claimed else '-->'}` of {there}",
            "a list without it",
            node=there,
        )


def _node(raw: RawNode, lists: Lists) -> Node:
    name, detail = raw.line.name, raw.line.detail
    if raw.line.kind is LineKind.SOURCE:
        topics = _TOPIC_LIST.fullmatch(detail)
        if topics is None:
            return SourceNode(name, pattern=detail)
        return SourceNode(name, tuple(topic.strip() for topic in topics[1].split(",")))
    if raw.line.kind is LineKind.PROCESSOR:
        stores = tuple(store.strip() for store in detail.split(",")) if detail.strip() else ()
        return ProcessorNode(name, lists[1], stores)
    keyword, _, target = detail.partition(": ")
    if keyword == "topic":
        return SinkNode(name, lists[1], topic=target)
    return SinkNode(name, lists[1], extractor=target)
