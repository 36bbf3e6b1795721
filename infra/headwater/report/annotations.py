"""Problems where a review shows them: GitHub's workflow commands, and GitLab's Code Quality report."""

import hashlib
from collections.abc import Iterable
from typing import Any

from headwater.model.problems import Problem, Severity

_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_GITLAB = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}


def github_annotations(problems: Iterable[Problem]) -> str:
    """Return a line for each problem, which GitHub Actions shows at its location in the pull request.

    Source: GitHub's documentation of workflow commands (`::error file=…,line=…::message`).
    """
    return "".join(f"{_annotation(problem)}\n" for problem in problems)


def code_quality(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Return GitLab's Code Quality report. A problem without a location is at line 1 of no file.

    Source: GitLab's documentation of the report format (a subset of CodeClimate's).
    """
    return [
        {
            "check_name": problem.code.value,
            "description": _message(problem),
            "severity": _GITLAB[problem.severity],
            "fingerprint": _fingerprint(problem),
            "location": {"path": _path(problem), "lines": {"begin": _line(problem)}},
        }
        for problem in problems
    ]


def _annotation(problem: Problem) -> str:
    properties = {"title": problem.code.value}
    if problem.location is not None:
        properties["file"] = problem.location.file
        if problem.location.line:
            properties |= {"line": str(problem.location.line), "col": str(problem.location.column)}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_GITHUB[problem.severity]} {listed}::{_data(_message(problem))}"


def _message(problem: Problem) -> str:
    parts = [problem.summary]
    if problem.expected or problem.found:
        parts.append(f"Expected: {problem.expected or '-'}. Found: {problem.found or '-'}.")
    return " ".join((*parts, problem.why, problem.fix)).strip()


def _path(problem: Problem) -> str:
    return problem.location.file if problem.location is not None else ""


def _line(problem: Problem) -> int:
    return problem.location.line if problem.location is not None and problem.location.line else 1


def _fingerprint(problem: Problem) -> str:
    """Return a text that stays the same when lines above the problem change."""
    pointer = problem.location.pointer if problem.location is not None else ""
    parts = (problem.code, _path(problem), pointer, problem.application or "", problem.summary)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
