"""Topologies as one self-contained SVG picture that follows the reader's light or dark color scheme."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from infra.model.compiled import CompiledApplication
from infra.planner.wording import counted
from infra.report.graph import Role, graph
from infra.report.layout import Layout, layout
from infra.report.palettes import PALETTES
from infra.report.templating import template

_SMALL_CHARACTER = 5.7
_LEGEND_HEIGHT = 52
_PICTURE_GAP = 12
_NARROWEST = 560
_LEGEND = {
    Role.SOURCE: "source topic",
    Role.REPARTITION: "repartition topic",
    Role.FK_SUBSCRIPTION: "foreign-key topic",
    Role.CHANGELOG: "store, with the partitions of its changelog topic",
    Role.SINK: "sink topic",
}


@attrs.frozen
class _Picture:
    """One application's picture at height `y`."""

    layout: Layout
    caption: str
    y: float


@attrs.frozen
class _LegendItem:
    css: str
    text: str
    x: float
    radius: int


def svg(compiled: Sequence[CompiledApplication], partitions: Mapping[str, int]) -> str:
    """Return an SVG document; `partitions` are known counts of topics that the applications do not own."""
    pictures = tuple(_stacked(compiled, partitions))
    legend = tuple(_legend_items())
    right = legend[-1].x + 29 + len(legend[-1].text) * _SMALL_CHARACTER + 48
    last = pictures[-1] if pictures else None
    return template("topology.svg.j2").render(
        pictures=pictures,
        legend=legend,
        palettes=PALETTES,
        width=max([_NARROWEST, right, *(picture.layout.width for picture in pictures)]),
        height=(last.y + last.layout.height if last else 0) + _LEGEND_HEIGHT,
        title=f"Topology of {', '.join(application.application.id for application in compiled)}",
    )


def _stacked(compiled: Sequence[CompiledApplication], partitions: Mapping[str, int]) -> Iterator[_Picture]:
    y: float = 0
    for application in compiled:
        placed = layout(application.application.id, graph([application], partitions))
        yield _Picture(placed, _caption(application), y)
        y += placed.height + _PICTURE_GAP


def _caption(application: CompiledApplication) -> str:
    topics = application.internal_topics
    partitions = counted(sum(topic.partitions for topic in topics), "partition")
    said = f"{counted(len(topics), 'internal topic')}, {partitions}" if topics else "no internal topics"
    return f"{said} · {application.application.protocol.value} group protocol"


def _legend_items() -> Iterator[_LegendItem]:
    x: float = 0
    for role, text in _LEGEND.items():
        yield _LegendItem(role.value, text, x, 7 if role in (Role.SOURCE, Role.SINK) else 4)
        x += 29 + len(text) * _SMALL_CHARACTER + 18
