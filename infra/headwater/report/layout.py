"""The layout of an application's picture: a lane for each sub-topology, data flows from left to right.

Coordinates are SVG user units. Column 2d holds the topics that sub-topologies of depth d read, column 2d + 1
those sub-topologies; topics that no drawn sub-topology reads are in the column after their writer.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.report.graph import Graph, PartBox, StoreBox, TopicBox

_MONO = 7.25
"""Width of a character of 12 px monospace."""
_SMALL = 5.5
"""Average width of a character of 11 px text."""
_MOST_CHARACTERS = 44
_TOPIC_HEIGHT = 46
_HEAD = 50
_STORE_HEIGHT = 26
_GAP = 12
_COLUMN_GAP = 56
_LANE_GAP = 14
_LANE_PADDING = 16
_MARGIN = 24
_TITLE = 64


@attrs.frozen
class Rectangle:
    """A rectangle in the coordinates of the picture."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@attrs.frozen
class Topic:
    """A topic, the text in its box, and where the box is."""

    box: TopicBox
    text: str
    at: Rectangle


@attrs.frozen
class Store:
    """A store, the text in its box, and where the box is."""

    box: StoreBox
    text: str
    at: Rectangle


@attrs.frozen
class Part:
    """A sub-topology, where its box is, and the lane around it and its topics."""

    box: PartBox
    at: Rectangle
    lane: Rectangle
    stores: tuple[Store, ...]


@attrs.frozen
class Layout:
    """One application's picture; `edges` are SVG path data."""

    application: str
    parts: tuple[Part, ...]
    topics: tuple[Topic, ...]
    edges: tuple[str, ...]
    width: float
    height: float


@attrs.frozen
class _Columns:
    """The column of each topic (by name) and sub-topology (by id), and the positions of the columns."""

    numbers: Mapping[str | int, int]
    starts: Mapping[int, float]
    widths: Mapping[int, float]

    def rectangle_of(self, box: str | int, y: float, height: float) -> Rectangle:
        column = self.numbers[box]
        return Rectangle(self.starts[column], y, self.widths[column], height)

    @property
    def right(self) -> float:
        return max((start + self.widths[column] for column, start in self.starts.items()), default=0)


def layout_graph(application: str, graph: Graph) -> Layout:
    """Return where each box of the picture is: a lane for each sub-topology, one below the other."""
    columns = _arrange_columns(graph)
    lanes = _arrange_lanes(graph.parts)
    width = columns.right + _MARGIN + _LANE_PADDING
    parts: list[Part] = []
    topics: list[Topic] = []
    top: float = _TITLE
    for part in graph.parts:
        stacks = _stack_topics(lanes[part.id], columns)
        lane = Rectangle(_MARGIN, top, width - 2 * _MARGIN, _lane_height(part, stacks))
        for stack in stacks:
            topics += _topic_boxes([graph.topics[name] for name in stack], columns, lane.middle)
        parts.append(_part_box(part, columns, lane))
        top = lane.y + lane.height + _LANE_GAP
    return Layout(application, tuple(parts), tuple(topics), tuple(_edge_lines(parts, topics)), width, top)


def shorten_name(text: str) -> str:
    """Return at most 44 characters; names differ at their ends, so the middle is left out."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    half = (_MOST_CHARACTERS - 1) // 2
    return f"{text[: _MOST_CHARACTERS - 1 - half]}…{text[-half:]}"


def _arrange_columns(graph: Graph) -> _Columns:
    columns = _column_numbers(graph.parts)
    widths: defaultdict[int, float] = defaultdict(float)
    for topic in graph.topics.values():
        column = columns[topic.name]
        widths[column] = max(widths[column], 116, len(shorten_name(topic.label)) * _MONO + 26)
    for part in graph.parts:
        longest = max((len(shorten_name(store.name)) for store in part.stores), default=0)
        tasks = len(part.parallelism) * _SMALL + 84  # and the number of nodes
        widths[columns[part.id]] = max(widths[columns[part.id]], 176, longest * _MONO + 84, tasks)
    starts, x = {}, float(_MARGIN + _LANE_PADDING)
    for column in sorted(widths):
        starts[column] = x
        x += widths[column] + _COLUMN_GAP
    return _Columns(columns, starts, widths)


def _column_numbers(parts: Sequence[PartBox]) -> Mapping[str | int, int]:
    columns: dict[str | int, int] = {
        part.id: 2 * depth + 1 for part, depth in zip(parts, _depths_of(parts), strict=True)
    }
    for part in parts:
        for name in part.reads:
            columns.setdefault(name, columns[part.id] - 1)
    read = set(columns)
    for part in parts:
        for name in part.writes:
            if name not in read:
                columns[name] = max(columns.get(name, 0), columns[part.id] + 1)
    return columns


def _arrange_lanes(parts: Sequence[PartBox]) -> Mapping[int, list[str]]:
    """Return sub-topology → topics in its lane: a topic is with its first reader, else its first writer."""
    lanes: defaultdict[int, list[str]] = defaultdict(list)
    done: set[str] = set()
    reads = [(part.id, name) for part in parts for name in part.reads]
    writes = [(part.id, name) for part in parts for name in part.writes]
    for part_id, name in (*reads, *writes):
        if name not in done:
            done.add(name)
            lanes[part_id].append(name)
    return lanes


def _stack_topics(names: Sequence[str], columns: _Columns) -> Sequence[Sequence[str]]:
    """Group the topics of a lane by column."""
    stacks: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        stacks[columns.numbers[name]].append(name)
    return tuple(stacks.values())


def _lane_height(part: PartBox, stacks: Sequence[Sequence[str]]) -> float:
    tallest = max((_stack_height(len(stack)) for stack in stacks), default=0)
    return 2 * _LANE_PADDING + max(_part_height(part), tallest)


def _stack_height(topics: int) -> float:
    return topics * (_TOPIC_HEIGHT + _GAP) - _GAP


def _part_height(part: PartBox) -> float:
    return _HEAD + len(part.stores) * _STORE_HEIGHT + (8 if part.stores else 0)


def _topic_boxes(stack: Sequence[TopicBox], columns: _Columns, middle: float) -> Iterator[Topic]:
    y = middle - _stack_height(len(stack)) / 2
    for box in stack:
        yield Topic(box, shorten_name(box.label), columns.rectangle_of(box.name, y, _TOPIC_HEIGHT))
        y += _TOPIC_HEIGHT + _GAP


def _part_box(part: PartBox, columns: _Columns, lane: Rectangle) -> Part:
    height = _part_height(part)
    at = columns.rectangle_of(part.id, lane.middle - height / 2, height)
    stores = tuple(
        Store(
            store,
            shorten_name(store.name),
            Rectangle(at.x + 8, at.y + _HEAD + number * _STORE_HEIGHT, at.width - 16, _STORE_HEIGHT - 4),
        )
        for number, store in enumerate(part.stores)
    )
    return Part(part, at, lane, stores)


def _edge_lines(parts: Sequence[Part], topics: Sequence[Topic]) -> Iterator[str]:
    """Yield a line for each topic read or written; the ends at a sub-topology are spread over its side."""
    positions = {topic.box.name: topic.at for topic in topics}
    for part in parts:
        reads = _from_top(positions, part.box.reads)
        for position, y in zip(reads, _port_positions(part.at, len(reads)), strict=True):
            yield _edge_line(position.right, position.middle, part.at.x, y, part.lane)
        writes = _from_top(positions, part.box.writes)
        for position, y in zip(writes, _port_positions(part.at, len(writes)), strict=True):
            yield _edge_line(part.at.right, y, position.x, position.middle, part.lane)


def _from_top(positions: Mapping[str, Rectangle], names: Sequence[str]) -> list[Rectangle]:
    return sorted((positions[name] for name in names), key=lambda position: (position.y, position.x))


def _port_positions(at: Rectangle, number: int) -> list[float]:
    if number == 1:
        return [at.middle]
    step = min(18.0, at.height / (number + 1))
    return [at.middle + (index - (number - 1) / 2) * step for index in range(number)]


def _edge_line(x1: float, y1: float, x2: float, y2: float, lane: Rectangle) -> str:
    tip = x2 - 7
    if tip <= x1:
        return _backward_line(x1, y1, tip, y2, lane)
    bend = max(28.0, abs(tip - x1) / 2)
    return f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {tip - bend:.1f} {y2:.1f} {tip:.1f} {y2:.1f}"


def _backward_line(x1: float, y1: float, tip: float, y2: float, lane: Rectangle) -> str:
    """Route an edge backwards: leave to the right, pass between two lanes, enter from the left."""
    gap = lane.y - _LANE_GAP / 2 if y2 < lane.y else lane.y + lane.height + _LANE_GAP / 2
    right, left, radius = x1 + 10, tip - 8, 6
    out, back = (radius if gap > y1 else -radius), (radius if y2 > gap else -radius)
    return (
        f"M{x1:.1f} {y1:.1f}H{right - radius:.1f}q{radius} 0 {radius} {out}V{gap - out:.1f}"
        f"q0 {out} {-radius} {out}H{left + radius:.1f}q{-radius} 0 {-radius} {back}V{y2 - back:.1f}"
        f"q0 {back} {radius} {back}H{tip:.1f}"
    )


def _depths_of(parts: Sequence[PartBox]) -> Sequence[int]:
    """Return how far downstream each sub-topology is: the length of the longest path to it.

    A cycle is entered at its first member.
    """
    readers: defaultdict[str, list[int]] = defaultdict(list)
    for index, part in enumerate(parts):
        for name in part.reads:
            readers[name].append(index)
    successors_of = [
        {reader for name in part.writes for reader in readers[name]} - {index}
        for index, part in enumerate(parts)
    ]
    waiting_for = [0] * len(parts)
    for successors in successors_of:
        for successor in successors:
            waiting_for[successor] += 1
    return _longest_paths(successors_of, waiting_for)


def _longest_paths(successors_of: Sequence[set[int]], waiting_for: list[int]) -> list[int]:
    depth = [0] * len(successors_of)
    done: set[int] = set()
    ready = deque(index for index, number in enumerate(waiting_for) if number == 0)
    untouched = iter(range(len(successors_of)))
    while len(done) < len(successors_of):
        index = ready.popleft() if ready else next(untouched)
        if index in done:
            continue
        done.add(index)
        for successor in successors_of[index] - done:
            depth[successor] = max(depth[successor], depth[index] + 1)
            waiting_for[successor] -= 1
            if waiting_for[successor] == 0:
                ready.append(successor)
    return depth
