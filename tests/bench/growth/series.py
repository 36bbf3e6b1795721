"""A series is what was measured at several sizes, each several times the one before."""

import os
from collections.abc import Iterator, Sequence

from tests.bench.figures import Figure

_PREFIX = "HEADWATER_BENCH_"


def sizes(variable: str, default: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of a series, in ascending order; `HEADWATER_BENCH_<variable>` replaces the default.

    Raises:
        ValueError: The variable is not a list of numbers.
    """
    return parsed_sizes(os.environ.get(_PREFIX + variable), default)


def parsed_sizes(text: str | None, default: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of a list with commas, ascending; the default without a list, none if it is empty.

    Raises:
        ValueError: `text` is not a list of positive numbers.
    """
    if text is None:
        return tuple(default)
    found = tuple(sorted(int(each) for each in text.split(",") if each.strip()))
    if any(each <= 0 for each in found):
        raise ValueError(f"sizes must be positive: {text}")
    return found


def sorted_by_series(figures: Sequence[Figure]) -> Iterator[tuple[Figure | None, Figure]]:
    """Yield each figure with the one before it in its series; a series is yielded as a whole."""
    for what in dict.fromkeys(figure.what for figure in figures):
        previous = None
        for figure in figures:
            if figure.what == what:
                yield previous, figure
                previous = figure


def per_added_unit(smaller: Figure, larger: Figure) -> float | None:
    """Return what each added unit adds: equal for all sizes if a line is straight, whatever its start is.

    None for figures that are per unit already, or have no size.
    """
    if smaller.size is None or larger.size is None or larger.is_per_unit:
        return None
    return (larger.ours - smaller.ours) / (larger.size - smaller.size)
