"""What a benchmark has measured: numbers next to those of a peer, or next to a goal."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

_MILLISECOND = 1e-3
_MEGABYTE = 1e6


def _range(found: Sequence[float] | None) -> tuple[float, float] | None:
    return None if found is None else (found[0], found[1])


@attrs.frozen(kw_only=True)
class Figure:
    """A median of Headwater in `unit`, and that of the program it is compared with.

    `goal` limits the ratio to the peer if there is one, and the number itself otherwise. `is_rate`: more is
    better. A figure of a series that shows growth has the size that it was measured at: a number of `units`
    (`10 topics`); `is_per_unit`: it is not for all of them. A range is the smallest and the largest number of
    the rounds that a median is taken of.
    """

    what: str
    unit: str
    ours: float
    peer: str = ""
    theirs: float | None = None
    goal: float | None = None
    is_rate: bool = False
    size: int | None = None
    units: str = ""
    is_per_unit: bool = False
    our_range: tuple[float, float] | None = attrs.field(default=None, converter=_range)
    their_range: tuple[float, float] | None = attrs.field(default=None, converter=_range)

    @property
    def title(self) -> str:
        """What was measured, at which size."""
        return self.what if self.size is None else f"{self.what}, {self.size:,} {self.units}"

    @property
    def per_unit(self) -> float | None:
        """The number for each unit of the size."""
        return self.ours if self.is_per_unit else self.ours / self.size if self.size else None

    @property
    def ratio(self) -> float | None:
        """Headwater's number as a multiple of the peer's."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def is_undecided(self) -> bool:
        """Return whether the rounds of both programs overlap: which one is better, they do not show."""
        if self.our_range is None or self.their_range is None:
            return False
        return self.our_range[0] <= self.their_range[1] and self.their_range[0] <= self.our_range[1]

    @property
    def meets_goal(self) -> bool | None:
        """Return whether the goal is met, to two digits as in the tables; None without a goal."""
        if self.goal is None:
            return None
        number = round(self.ours if self.ratio is None else self.ratio, 2)
        return number >= self.goal if self.is_rate else number <= self.goal

    @property
    def speed(self) -> float | None:
        """How many times as fast as the peer: the ratio of rates, the inverse ratio of times."""
        return self.ratio if self.ratio is None or self.is_rate else 1 / self.ratio


@attrs.frozen(kw_only=True)
class Measured:
    """The figures of a benchmark, and of which commit, when, where and with which settings they are."""

    figures: tuple[Figure, ...]
    commit: str
    date: str
    machine: str
    settings: str = ""


@attrs.frozen
class Results:
    """Benchmark → its latest figures."""

    benchmarks: Mapping[str, Measured] = attrs.field(factory=dict)

    @classmethod
    def read(cls, file: Path) -> "Results":
        """Read results. Raises `ValueError` for a file that is not such JSON."""
        content: Mapping[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        return cls({name: _measured(fields) for name, fields in content.items()})

    def write(self, file: Path) -> None:
        content = {
            name: attrs.asdict(measured, filter=_is_written)
            for name, measured in sorted(self.benchmarks.items())
        }
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def having(self, name: str, measured: Measured) -> "Results":
        """Return the same with new figures of a benchmark. Figures that are not numbers are left out."""
        valid = tuple(
            figure
            for figure in measured.figures
            if math.isfinite(figure.ours) and (figure.theirs is None or math.isfinite(figure.theirs))
        )
        return Results({**self.benchmarks, name: attrs.evolve(measured, figures=valid)})

    def __iter__(self) -> Iterator[tuple[str, Figure]]:
        for name, measured in self.benchmarks.items():
            for figure in measured.figures:
                yield name, figure


def shown(figures: Sequence[Figure]) -> str:
    """Return a line for each figure."""
    return "\n".join(map(_line, figures))


def number(value: float, unit: str) -> str:
    """Return a number with its unit, with about three digits."""
    if unit == "s" and abs(value) < 1:
        value, unit = (value * 1e6, "µs") if 0 < abs(value) < _MILLISECOND else (value * 1_000, "ms")
    if unit == "batches" and value == 1:
        unit = "batch"
    if unit == "B" and abs(value) >= _MEGABYTE:
        value, unit = value / _MEGABYTE, "MB"
    digits = 0 if abs(value) >= 100 or isinstance(value, int) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def spread(found: tuple[float, float] | None, unit: str) -> str:
    """Return the numbers of the rounds in parentheses, without the unit; empty if they are not known."""
    if found is None:
        return ""
    low, high = (number(each, unit) for each in found)
    return f" ({low.partition(' ')[0] if low.split()[1:] == high.split()[1:] else low} to {high})"


def _line(figure: Figure) -> str:
    text = f"{figure.title}: {number(figure.ours, figure.unit)}"
    if figure.per_unit is not None and not figure.is_per_unit:
        text += f", {number(figure.per_unit, figure.unit)} each"
    if figure.theirs is not None and figure.ratio is not None:
        text += f"; {figure.peer} {number(figure.theirs, figure.unit)}, ratio {figure.ratio:.2f}"
    return text if figure.goal is None else f"{text} ({goal(figure)})"


def goal(figure: Figure) -> str:
    """Return the goal of a figure as text."""
    assert figure.goal is not None
    value = f"{figure.goal:g}" if figure.ratio is not None else number(figure.goal, figure.unit)
    return f"{'at least' if figure.is_rate else 'at most'} {value}"


def _is_written(attribute: "attrs.Attribute[Any]", value: object) -> bool:
    """Return whether an attribute is written: sizes and ranges only for figures that have them."""
    optional = {"size", "units", "is_per_unit", "our_range", "their_range"}
    return attribute.name not in optional or bool(value)


def _measured(fields: dict[str, Any]) -> Measured:
    return Measured(**{**fields, "figures": tuple(Figure(**figure) for figure in fields["figures"])})
