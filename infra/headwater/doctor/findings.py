"""The result of one check."""

from collections.abc import Iterable
from enum import StrEnum

import attrs

from headwater.model.problems import Problem, Severity


class Status(StrEnum):
    """The status of a check. ERROR: something does not work. UNKNOWN: the check could not be made."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


class Section(StrEnum):
    """What a check is about."""

    MACHINE = "this machine"
    STACK = "stack"
    CLUSTER = "cluster"
    PERMISSIONS = "permissions"
    AGENTS = "agents"


@attrs.frozen(kw_only=True)
class Finding:
    """The result of the check `check`; `text` is what was found. A result that is not OK has a `fix`."""

    section: Section
    check: str
    status: Status
    text: str
    why: str = ""
    fix: str = ""


@attrs.frozen
class Check:
    """A check by its name, which makes the finding of each outcome."""

    section: Section
    name: str

    def ok(self, text: str) -> Finding:
        return Finding(section=self.section, check=self.name, status=Status.OK, text=text)

    def warning(self, text: str, *, why: str, fix: str) -> Finding:
        return self._finding(Status.WARNING, text, why, fix)

    def error(self, text: str, *, why: str, fix: str) -> Finding:
        return self._finding(Status.ERROR, text, why, fix)

    def unknown(self, text: str, *, fix: str) -> Finding:
        return self._finding(Status.UNKNOWN, text, "", fix)

    def of_problem(self, problem: Problem) -> Finding:
        """Return the problem as a finding; a hint is a warning."""
        found = f" {problem.found}" if problem.found else ""
        where = f" ({problem.location})" if problem.location else ""
        status = Status.ERROR if problem.severity is Severity.ERROR else Status.WARNING
        text = f"{problem.code}: {problem.summary}{where}{' Found:' if found else ''}{found}"
        return self._finding(status, text, problem.why, problem.fix)

    def _finding(self, status: Status, text: str, why: str, fix: str) -> Finding:
        return Finding(section=self.section, check=self.name, status=status, text=text, why=why, fix=fix)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Return whether one of the findings is an error."""
    return any(finding.status is Status.ERROR for finding in findings)


def version_text(version: Iterable[int]) -> str:
    """Return a version as text: `(4, 1)` as `4.1`."""
    return ".".join(map(str, version))
