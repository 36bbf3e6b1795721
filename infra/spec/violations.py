"""What does not fit the schema, as problems: one for each mistake, no cascades."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from infra.model.problems import Problem, ProblemCode
from infra.spec.complaints import WHY, complaints
from infra.spec.limits import MAX_PROBLEMS
from infra.spec.places import RawDocument
from infra.spec.schema import Violation, find_violations


def violations(raw: RawDocument, schema: str = "topology.v1") -> tuple[Problem, ...]:
    """All that does not fit the published schema of that name, at most `MAX_PROBLEMS` of it."""
    problems = tuple(islice(_problems(raw, schema), MAX_PROBLEMS + 1))
    if len(problems) <= MAX_PROBLEMS:
        return problems
    more = Problem(
        code=ProblemCode.SCHEMA_VIOLATION,
        summary=f"There are more than {MAX_PROBLEMS} mistakes; the rest is not shown.",
        why=WHY,
        fix="Correct those shown first.",
        location=raw.location(()),
    )
    return (*problems[:MAX_PROBLEMS], more)


def _problems(raw: RawDocument, schema: str) -> Iterator[Problem]:
    told: set[tuple[object, ...]] = set()
    for violation in find_violations(raw.data, schema):
        # a rule about several keys (`required`) is broken once for each, and told of at once
        rule = (violation.path, violation.schema_path, violation.value if violation.is_of_key else None)
        if rule not in told and not _follows_from_indentation(raw.data, violation):
            told.add(rule)
            yield from _told(raw, violation)


def _follows_from_indentation(data: Any, violation: Violation) -> bool:  # noqa: ANN401 - walks any value
    """A step of several keys is told as such: what is in it was meant otherwise."""
    for index, part in enumerate(violation.path):
        data = data[part]
        is_step = isinstance(part, int) and violation.path[index - 1] in ("topology", "then")
        if is_step and isinstance(data, dict) and len(data) > 1:
            return violation.keyword != "maxProperties"
    return False


def _told(raw: RawDocument, violation: Violation) -> Iterator[Problem]:
    for complaint in complaints(violation):
        location = raw.location(complaint.path, at_key=complaint.at_key)
        if location is not None:
            yield Problem(
                code=ProblemCode.SCHEMA_VIOLATION,
                summary=complaint.summary,
                expected=complaint.expected,
                found=complaint.found,
                why=complaint.why,
                fix=complaint.fix,
                location=location,
            )
