"""Topologies as one self-contained SVG picture that follows the viewer's light or dark color scheme."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.planner.phrases import counted
from headwater.report.graph import Role, build_graph
from headwater.report.layout import Layout, layout_graph
from headwater.report.templating import load_template

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
    """The picture of one application at height `y`."""

    layout: Layout
    caption: str
    y: float


@attrs.frozen
class _LegendItem:
    css: str
    text: str
    x: float
    radius: int


def svg_text(compiled: Sequence[CompiledApplication], partitions: Mapping[str, int]) -> str:
    """Return an SVG document; `partitions` are known counts of topics that the applications do not own."""
    pictures = tuple(_draw_pictures(compiled, partitions))
    legend = tuple(_legend_items())
    right = legend[-1].x + 29 + len(legend[-1].text) * _SMALL_CHARACTER + 48
    last = pictures[-1] if pictures else None
    return load_template("topology.svg.j2").render(
        pictures=pictures,
        legend=legend,
        palettes=_PALETTES,
        width=max([_NARROWEST, right, *(picture.layout.width for picture in pictures)]),
        height=(last.y + last.layout.height if last else 0) + _LEGEND_HEIGHT,
        title=f"Topology of {', '.join(application.application.id for application in compiled)}",
    )


def _draw_pictures(
    compiled: Sequence[CompiledApplication], partitions: Mapping[str, int]
) -> Iterator[_Picture]:
    y: float = 0
    for application in compiled:
        drawing = layout_graph(application.application.id, build_graph([application], partitions))
        yield _Picture(drawing, _caption_of(application), y)
        y += drawing.height + _PICTURE_GAP


def _caption_of(application: CompiledApplication) -> str:
    topics = application.internal_topics
    partitions = counted(sum(topic.partitions for topic in topics), "partition")
    text = f"{counted(len(topics), 'internal topic')}, {partitions}" if topics else "no internal topics"
    return f"{text} · {application.application.protocol.value} group protocol"


def _legend_items() -> Iterator[_LegendItem]:
    x: float = 0
    for role, text in _LEGEND.items():
        yield _LegendItem(role.value, text, x, 7 if role in (Role.SOURCE, Role.SINK) else 4)
        x += 29 + len(text) * _SMALL_CHARACTER + 18


def _css_rules(
    *,
    page: str,
    lane: tuple[str, str],
    part: tuple[str, str],
    ink: str,
    muted: str,
    edge: str,
    **boxes: tuple[str, str],
) -> Mapping[str, str]:
    """Return CSS selector → declarations; pairs are fill and stroke.

    Plain rules, because several viewers do not support CSS variables.
    """
    return {
        ".page": f"fill: {page}",
        ".ink": f"fill: {ink}",
        ".muted": f"fill: {muted}",
        ".edge": f"stroke: {edge}",
        ".tip": f"fill: {edge}",
        ".icon": f"fill: none; stroke: {boxes['changelog'][1]}; stroke-width: 1.25",
        ".lane": f"fill: {lane[0]}; stroke: {lane[1]}",
        ".part": f"fill: {part[0]}; stroke: {part[1]}",
        ".pattern": f"fill: {boxes['source'][0]}; stroke: {boxes['source'][1]}",
    } | {
        f".{name.replace('_', '-')}": f"fill: {fill}; stroke: {stroke}"
        for name, (fill, stroke) in boxes.items()
    }


_PALETTES: Mapping[str, Mapping[str, str]] = {
    "light": _css_rules(
        page="#ffffff",
        lane=("#f8fafc", "#e2e8f0"),
        part=("#ffffff", "#94a3b8"),
        ink="#0f172a",
        muted="#64748b",
        edge="#94a3b8",
        source=("#f1f5f9", "#64748b"),
        repartition=("#eff6ff", "#3b82f6"),
        fk_subscription=("#f5f3ff", "#8b5cf6"),
        changelog=("#fffbeb", "#d97706"),
        unlogged=("#ffffff", "#cbd5e1"),
        sink=("#f0fdf4", "#16a34a"),
    ),
    "dark": _css_rules(
        page="#0b1220",
        lane=("#111a2c", "#1e2a42"),
        part=("#182338", "#475a78"),
        ink="#e6edf7",
        muted="#93a3bb",
        edge="#5b6f8f",
        source=("#1b2740", "#7b8ba5"),
        repartition=("#132748", "#5b9bff"),
        fk_subscription=("#251c46", "#a78bfa"),
        changelog=("#2e2411", "#e0a63a"),
        unlogged=("#182338", "#334562"),
        sink=("#10301f", "#3fbf73"),
    ),
}
