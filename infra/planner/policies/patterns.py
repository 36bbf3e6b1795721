"""Patterns of policies: Java regular expressions, as in pattern sources, matched in linear time."""

from functools import cache

from infra.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from infra.model.policies import Policy


def matches(pattern: str, name: str) -> bool:
    """Whether the whole name matches; not if finding out would take too much memory."""
    return _verdict(pattern, name) is True


def chooses(policy: Policy, application_id: str) -> bool:
    """Whether the policy is for the application; in doubt it is."""
    return policy.applications is None or _verdict(policy.applications, application_id) is not False


def _verdict(pattern: str, name: str) -> bool | None:
    try:
        return _compiled(pattern).matches(name)
    except UntranslatablePatternError:
        return None


@cache
def _compiled(pattern: str) -> JavaPattern:
    return JavaPattern(pattern)
