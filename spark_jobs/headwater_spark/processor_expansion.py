"""How many processors an application has, and what an expansion that adds processors does (KIP-287).

`processors()` of the application that `UncaughtExceptionHandler.init` receives returns a `ProcessorsStatus`.
"""

from enum import Enum

import attrs

from headwater.model.problems import Problem


class ExpansionPhase(Enum):
    """What an expansion does.

    CHECK: nothing has changed. CATCH_UP: entries are copied while the application runs. CUT: the
    sub-topologies with state process no batch.
    """

    IDLE = "idle"
    CHECK = "check"
    CATCH_UP = "catch-up"
    CUT = "cut"


@attrs.frozen
class ProcessorsStatus:
    """The number of processors, and how far an expansion is.

    `processors` is the present number; None = the document declares none. `target` belongs to the running
    expansion. `copied` and `remaining` are records of changelog topics that it has read and not yet read;
    while the input is checked, records of the input. `problems` say why the last expansion was refused, or is
    delayed.
    """

    processors: int | None
    target: int | None = None
    phase: ExpansionPhase = ExpansionPhase.IDLE
    copied: int = 0
    remaining: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def is_advancing(self) -> bool:
        """Whether an expansion runs and is not delayed."""
        return self.target is not None and not self.problems
