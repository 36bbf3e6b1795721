"""Windows of the DSL. Durations are milliseconds; `grace` starts at the window's end, in stream time."""

import attrs


@attrs.frozen
class TumblingWindow:
    """`TimeWindows.ofSizeAndGrace(size, grace)`."""

    size_ms: int
    grace_ms: int = 0


@attrs.frozen
class HoppingWindow:
    """`TimeWindows.ofSizeAndGrace(size, grace).advanceBy(advance)`."""

    size_ms: int
    advance_ms: int
    grace_ms: int = 0


@attrs.frozen
class SlidingWindow:
    """`SlidingWindows.ofTimeDifferenceAndGrace(difference, grace)`."""

    difference_ms: int
    grace_ms: int = 0


@attrs.frozen
class SessionWindow:
    """`SessionWindows.ofInactivityGapAndGrace(gap, grace)`."""

    gap_ms: int
    grace_ms: int = 0


@attrs.frozen
class UnlimitedWindow:
    """`UnlimitedWindows.of()`, optionally `startOn(start)` (milliseconds since the epoch)."""

    start_ms: int = 0


Window = TumblingWindow | HoppingWindow | SlidingWindow | SessionWindow | UnlimitedWindow


@attrs.frozen
class JoinWindow:
    """`JoinWindows`: the other record may be `before_ms` milliseconds earlier or `after_ms` later.

    `eager`: `JoinWindows.of`, which disables the fix for spurious results (KAFKA-10847). Left and outer joins
    join a record without a match with null at once, instead of when its window closes.
    """

    before_ms: int
    after_ms: int
    grace_ms: int = 0
    eager: bool = False
