"""The colors of the SVG pictures. Plain rules, for several viewers do not know CSS variables."""

from collections.abc import Mapping


def _rules(
    *,
    page: str,
    lane: tuple[str, str],
    part: tuple[str, str],
    ink: str,
    muted: str,
    edge: str,
    **boxes: tuple[str, str],
) -> Mapping[str, str]:
    """Return CSS selector → declarations; pairs are fill and stroke."""
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


PALETTES: Mapping[str, Mapping[str, str]] = {
    "light": _rules(
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
    "dark": _rules(
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
