"""The mark in the offset metadata while the state of an application moves to more processors (KIP-287)."""

from enum import Enum

import attrs


class MovePhase(Enum):
    """What is done next: nothing has moved while entries are copied, everything has when they are cleared."""

    COPY = "copy"
    CLEAR = "clear"


@attrs.frozen
class MoveMark:
    """The state moves from `before` to `after` processors. No client may process records meanwhile."""

    phase: MovePhase
    before: int
    after: int
