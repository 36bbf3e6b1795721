"""What the exit codes of `headwater` mean. Each has one meaning, whatever the command."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The README shows these as a table; a test holds the two together."""

    DONE = 0
    PROBLEMS = 1
    DRIFT = 2
    REFUSED = 3
    USAGE = 64
    BUG = 70
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.DONE: "done; nothing is wrong (warnings may have been shown)",
    ExitCode.PROBLEMS: "problems in the documents, or something could not be read or reached",
    ExitCode.DRIFT: "the cluster differs from what is declared (`drift`)",
    ExitCode.REFUSED: "the plan is refused: nothing would be changed (`plan`), "
    "not everything was compared (`drift`)",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.BUG: "an error in Headwater itself",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}
