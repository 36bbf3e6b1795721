"""Where things stand in the picture of an application: a lane for each sub-topology, data flowing rightwards.

Coordinates are SVG user units. Column 2d holds the topics that sub-topologies of depth d read, column 2d + 1
those sub-topologies; what the last ones write comes in the column after them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import attrs

from infra.report.depths import depths
from infra.report.graph import Graph, PartBox, StoreBox, TopicBox

_MONO = 7.25  # width of a character of 12 px monospace
_LONGEST = 44
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
class Placed:
    """A rectangle."""

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
    box: TopicBox
    text: str
    at: Placed


@attrs.frozen
class Store:
    box: StoreBox
    text: str
    at: Placed


@attrs.frozen
class Part:
    box: PartBox
    at: Placed
    lane: Placed
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
    """Which column a topic (by name) or a sub-topology (by id) stands in, and where the columns are."""

    of: Mapping[str | int, int]
    starts: Mapping[int, float]
    widths: Mapping[int, float]

    def at(self, what: str | int, y: float, height: float) -> Placed:
        column = self.of[what]
        return Placed(self.starts[column], y, self.widths[column], height)

    @property
    def right(self) -> float:
        return max((start + self.widths[column] for column, start in self.starts.items()), default=0)


def layout(application: str, graph: Graph) -> Layout:
    """Place everything of a graph of one application."""
    columns = _columns(graph)
    lanes = _lanes(graph.parts)
    width = columns.right + _MARGIN + _LANE_PADDING
    parts: list[Part] = []
    topics: list[Topic] = []
    top: float = _TITLE
    for part in graph.parts:
        stacks = _stacks(lanes[part.id], columns)
        lane = Placed(_MARGIN, top, width - 2 * _MARGIN, _lane_height(part, stacks))
        for stack in stacks:
            topics += _placed_topics([graph.topics[name] for name in stack], columns, lane.middle)
        parts.append(_placed_part(part, columns, lane))
        top = lane.y + lane.height + _LANE_GAP
    return Layout(application, tuple(parts), tuple(topics), tuple(_edges(parts, topics)), width, top)


def shortened(text: str) -> str:
    """Return at most 44 characters; names begin and end with what tells them apart, so the middle goes."""
    if len(text) <= _LONGEST:
        return text
    half = (_LONGEST - 1) // 2
    return f"{text[: _LONGEST - 1 - half]}…{text[-half:]}"


def _columns(graph: Graph) -> _Columns:
    columns = _column_numbers(graph.parts)
    widths: defaultdict[int, float] = defaultdict(float)
    for topic in graph.topics.values():
        column = columns[topic.name]
        widths[column] = max(widths[column], 116, len(shortened(topic.label)) * _MONO + 26)
    for part in graph.parts:
        longest = max((len(shortened(store.name)) for store in part.stores), default=0)
        widths[columns[part.id]] = max(widths[columns[part.id]], 176, longest * _MONO + 84)
    starts, x = {}, float(_MARGIN + _LANE_PADDING)
    for column in sorted(widths):
        starts[column] = x
        x += widths[column] + _COLUMN_GAP
    return _Columns(columns, starts, widths)


def _column_numbers(parts: Sequence[PartBox]) -> Mapping[str | int, int]:
    columns: dict[str | int, int] = {
        part.id: 2 * depth + 1 for part, depth in zip(parts, depths(parts), strict=True)
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


def _lanes(parts: Sequence[PartBox]) -> Mapping[int, list[str]]:
    """Sub-topology → the topics in its lane: those that it is the first to read, else the first to write."""
    lanes: defaultdict[int, list[str]] = defaultdict(list)
    placed: set[str] = set()
    reads = [(part.id, name) for part in parts for name in part.reads]
    writes = [(part.id, name) for part in parts for name in part.writes]
    for part_id, name in (*reads, *writes):
        if name not in placed:
            placed.add(name)
            lanes[part_id].append(name)
    return lanes


def _stacks(names: Sequence[str], columns: _Columns) -> Sequence[Sequence[str]]:
    """Group the topics of a lane by column."""
    stacks: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        stacks[columns.of[name]].append(name)
    return tuple(stacks.values())


def _lane_height(part: PartBox, stacks: Sequence[Sequence[str]]) -> float:
    tallest = max((_stack_height(len(stack)) for stack in stacks), default=0)
    return 2 * _LANE_PADDING + max(_part_height(part), tallest)


def _stack_height(topics: int) -> float:
    return topics * (_TOPIC_HEIGHT + _GAP) - _GAP


def _part_height(part: PartBox) -> float:
    return _HEAD + len(part.stores) * _STORE_HEIGHT + (8 if part.stores else 0)


def _placed_topics(stack: Sequence[TopicBox], columns: _Columns, middle: float) -> Iterator[Topic]:
    y = middle - _stack_height(len(stack)) / 2
    for box in stack:
        yield Topic(box, shortened(box.label), columns.at(box.name, y, _TOPIC_HEIGHT))
        y += _TOPIC_HEIGHT + _GAP


def _placed_part(part: PartBox, columns: _Columns, lane: Placed) -> Part:
    height = _part_height(part)
    at = columns.at(part.id, lane.middle - height / 2, height)
    stores = tuple(
        Store(
            store,
            shortened(store.name),
            Placed(at.x + 8, at.y + _HEAD + number * _STORE_HEIGHT, at.width - 16, _STORE_HEIGHT - 4),
        )
        for number, store in enumerate(part.stores)
    )
    return Part(part, at, lane, stores)


def _edges(parts: Sequence[Part], topics: Sequence[Topic]) -> Iterator[str]:
    """Yield a line for each topic read or written; the ends at a sub-topology are spread over its side."""
    places = {topic.box.name: topic.at for topic in topics}
    for part in parts:
        reads = _from_top(places, part.box.reads)
        for place, y in zip(reads, _ports(part.at, len(reads)), strict=True):
            yield _line(place.right, place.middle, part.at.x, y, part.lane)
        writes = _from_top(places, part.box.writes)
        for place, y in zip(writes, _ports(part.at, len(writes)), strict=True):
            yield _line(part.at.right, y, place.x, place.middle, part.lane)


def _from_top(places: Mapping[str, Placed], names: Sequence[str]) -> list[Placed]:
    return sorted((places[name] for name in names), key=lambda place: (place.y, place.x))


def _ports(at: Placed, number: int) -> list[float]:
    if number == 1:
        return [at.middle]
    step = min(18.0, at.height / (number + 1))
    return [at.middle + (index - (number - 1) / 2) * step for index in range(number)]


def _line(x1: float, y1: float, x2: float, y2: float, lane: Placed) -> str:
    tip = x2 - 7
    if tip <= x1:
        return _way_back(x1, y1, tip, y2, lane)
    bend = max(28.0, abs(tip - x1) / 2)
    return f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {tip - bend:.1f} {y2:.1f} {tip:.1f} {y2:.1f}"


def _way_back(x1: float, y1: float, tip: float, y2: float, lane: Placed) -> str:
    """Go around: out to the right, through the gap between two lanes, in from the left."""
    gap = lane.y - _LANE_GAP / 2 if y2 < lane.y else lane.y + lane.height + _LANE_GAP / 2
    right, left, radius = x1 + 10, tip - 8, 6
    out, back = (radius if gap > y1 else -radius), (radius if y2 > gap else -radius)
    return (
        f"M{x1:.1f} {y1:.1f}H{right - radius:.1f}q{radius} 0 {radius} {out}V{gap - out:.1f}"
        f"q0 {out} {-radius} {out}H{left + radius:.1f}q{-radius} 0 {-radius} {back}V{y2 - back:.1f}"
        f"q0 {back} {radius} {back}H{tip:.1f}"
    )
