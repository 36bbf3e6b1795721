"""What does not fit the schema, as problems: one for each mistake, no cascades."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from infra.model.problems import Problem, ProblemCode
from infra.spec.complaints import complaints
from infra.spec.files import DOCUMENT, FileKind
from infra.spec.limits import MAX_PROBLEMS
from infra.spec.places import RawDocument
from infra.spec.schema import Violation, find_violations


def violations(raw: RawDocument, kind: FileKind = DOCUMENT) -> tuple[Problem, ...]:
    """Return what does not fit the schema of this kind of file, at most `MAX_PROBLEMS` problems."""
    problems = tuple(islice(_problems(raw, kind), MAX_PROBLEMS + 1))
    if len(problems) <= MAX_PROBLEMS:
        return problems
    more = Problem(
        code=ProblemCode.SCHEMA_VIOLATION,
        summary=f"There are more than {MAX_PROBLEMS} mistakes; the rest is not shown.",
        why=kind.why_misfit,
        fix="Correct those shown first.",
        location=raw.location(()),
    )
    return (*problems[:MAX_PROBLEMS], more)


def _problems(raw: RawDocument, kind: FileKind) -> Iterator[Problem]:
    told: set[tuple[object, ...]] = set()
    for violation in find_violations(raw.data, kind.schema):
        # a rule about several keys (`required`) is broken once for each, and told of at once
        rule = (violation.path, violation.schema_path, violation.value if violation.is_of_key else None)
        if rule not in told and not _follows_from_indentation(raw.data, violation):
            told.add(rule)
            yield from _told(raw, violation, kind)


def _follows_from_indentation(data: Any, violation: Violation) -> bool:  # noqa: ANN401 - walks any value
    """A step of several keys is told as such: what is in it was meant otherwise."""
    for index, part in enumerate(violation.path):
        data = data[part]
        is_step = isinstance(part, int) and violation.path[index - 1] in ("topology", "then")
        if is_step and isinstance(data, dict) and len(data) > 1:
            return violation.keyword != "maxProperties"
    return False


def _told(raw: RawDocument, violation: Violation, kind: FileKind) -> Iterator[Problem]:
    for complaint in complaints(violation):
        location = raw.location(complaint.path, at_key=complaint.at_key)
        if location is not None:
            yield Problem(
                code=ProblemCode.SCHEMA_VIOLATION,
                summary=complaint.summary,
                expected=complaint.expected,
                found=complaint.found,
                why=complaint.why or kind.why_misfit,
                fix=complaint.fix,
                location=location,
            )
