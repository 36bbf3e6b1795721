"""The exit codes of `headwater`. Each code has the same meaning for all commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The README lists these in a table; a test compares the two."""

    DONE = 0
    PROBLEMS = 1
    DRIFT = 2
    REFUSED = 3
    USAGE = 64
    BUG = 70
    RESTART = 75
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.DONE: "success (warnings may have been printed)",
    ExitCode.PROBLEMS: "an error: problems in the documents, a file, cluster or service that could not "
    "be read, a check or request that failed, or an application that stopped (`run`)",
    ExitCode.DRIFT: "the cluster differs from what is declared (`drift`, "
    "`processors status`) or imported (`import`), or an upgrade or edit changes something "
    "(`upgrade`, `change`)",
    ExitCode.REFUSED: "the plan is refused and nothing would be changed (`plan`), "
    "or the comparison is not complete (`drift`, `upgrade`, `change`)",
    ExitCode.USAGE: "invalid command line",
    ExitCode.BUG: "an error in Headwater itself",
    ExitCode.RESTART: "Spark's JVM has ended, or the process did not stop in time: start it again "
    "(`run`, `agent run`)",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}
