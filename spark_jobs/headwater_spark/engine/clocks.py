"""Times and counters of a task that outlive a batch."""

from collections.abc import MutableMapping

UNSET = -1


class Clock:
    """A time in milliseconds, or a counter, of a task, a store or an operator; -1 = not set yet.

    Owners change `now` directly: a clock is read and set for each record.
    """

    __slots__ = ("now",)

    def __init__(self, now: int = UNSET) -> None:
        self.now = now


class Clocks:
    """The clocks of one task by name. `metadata` has their values as of the last committed batch."""

    def __init__(self, metadata: MutableMapping[str, int]) -> None:
        self._metadata = metadata
        self._clocks: dict[str, Clock] = {}

    def clock(self, name: str) -> Clock:
        """Return the clock of this name, always the same object."""
        known = self._clocks.get(name)
        if known is None:
            known = self._clocks[name] = Clock(self._metadata.get(name, UNSET))
        return known

    def save(self) -> None:
        """Write the clocks to the metadata, without those never set: offset metadata has a size limit."""
        self._metadata.update((name, clock.now) for name, clock in self._clocks.items() if clock.now != UNSET)
