"""Bounds in words."""

from collections.abc import Callable

from infra.model.policies import Bounds


def bounds_text(bounds: Bounds, shown: Callable[[int], str] = str) -> str:
    """Return `2 to 3`, `at least 2`, `at most 3`."""
    if bounds.least is not None and bounds.most is not None:
        if bounds.least == bounds.most:
            return shown(bounds.least)
        return f"{shown(bounds.least)} to {shown(bounds.most)}"
    if bounds.least is not None:
        return f"at least {shown(bounds.least)}"
    return f"at most {shown(bounds.most or 0)}"
