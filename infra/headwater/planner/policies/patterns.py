"""Patterns of policies: Java regular expressions, as in pattern sources, matched in linear time."""

from functools import cache

from headwater.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from headwater.model.policies import Policy


def matches(pattern: str, name: str) -> bool:
    """Return whether the whole name matches; False if the check would take too much memory."""
    return _match(pattern, name) is True


def chooses(policy: Policy, application_id: str) -> bool:
    """Return whether the policy applies to the application; True in doubt."""
    return policy.applications is None or _match(policy.applications, application_id) is not False


def _match(pattern: str, name: str) -> bool | None:
    try:
        return _compiled(pattern).matches(name)
    except UntranslatablePatternError:
        return None


@cache
def _compiled(pattern: str) -> JavaPattern:
    return JavaPattern(pattern)
