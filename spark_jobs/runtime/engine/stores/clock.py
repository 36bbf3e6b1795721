"""Times that only move on."""


class Clock:
    """A time (or count) that outlives the batch: one of the task, of a store, of an operator.

    -1 = nothing seen. All of a task's are kept by name in its metadata.
    """

    __slots__ = ("now",)

    def __init__(self, now: int = -1) -> None:
        self.now = now
