"""The mark in the offset metadata while state moves to another number of processors (KIP-287)."""

from collections.abc import Iterable, Sequence
from enum import Enum

import attrs


class MovePhase(Enum):
    """What is done next: nothing has moved while entries are copied, everything has when they are cleared.

    CATCH_UP: entries are copied while the application runs. This mark is with the changelog topics, because
    tasks commit the offsets of the input.
    """

    CATCH_UP = "catch-up"
    COPY = "copy"
    CLEAR = "clear"


@attrs.frozen
class MoveMark:
    """The state moves from `before` to `after` processors.

    From COPY on, no client may process records until it has moved.
    """

    phase: MovePhase
    before: int
    after: int


def announcements(changelogs: Iterable[str]) -> Sequence[tuple[str, int]]:
    """Return the topic partitions whose offset metadata announce a move of these changelog topics."""
    return [(topic, 0) for topic in sorted(set(changelogs))]
