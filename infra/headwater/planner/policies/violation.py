"""The problem of a policy that an application does not follow, and phrases for its texts."""

from collections.abc import Callable

from headwater.compiler.streams_config import SetupMode, StreamsConfig
from headwater.model.policies import Bounds, Policy
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.planner.policies.subject import PolicyTopic, Subject


def violation(
    policy: Policy,
    subject: Subject,
    summary: str,
    *,
    topic: PolicyTopic | None = None,
    node: str | None = None,
    expected: str,
    found: str,
    why: str,
    fix: str,
) -> Problem:
    """Return the problem, at the topic's operator or the application. The policy's message replaces `why`."""
    return Problem(
        code=ProblemCode.POLICY_VIOLATED,
        summary=summary,
        application=subject.application.id,
        topic=topic.name if topic else None,
        node=node or (topic.own_name if topic else None),
        expected=f"{expected} (policy {policy.key}, {_file_and_line(policy.at)})",
        found=found,
        why=policy.message or why,
        fix=fix,
        location=(topic.at if topic else None) or subject.application.at,
        severity=policy.severity,
    )


def on_existing_topic(subject: Subject, topic: PolicyTopic, key: str, value: str) -> str:
    """Return how to set a value on a topic that exists, where no run does: with `manual` setup."""
    if StreamsConfig.of(subject.application).setup_mode is not SetupMode.MANUAL:
        return ""
    return (
        " If the topic exists, also run `kafka-configs.sh --bootstrap-server BROKER --alter --topic "
        f"{topic.name} --add-config {key}={value}`: no run changes it with `internal.topics.setup: manual`."
    )


def bounds_text(bounds: Bounds, shown: Callable[[int], str] = str) -> str:
    """Return `2 to 3`, `at least 2`, `at most 3`."""
    if bounds.least is not None and bounds.most is not None:
        if bounds.least == bounds.most:
            return shown(bounds.least)
        return f"{shown(bounds.least)} to {shown(bounds.most)}"
    if bounds.least is not None:
        return f"at least {shown(bounds.least)}"
    return f"at most {shown(bounds.most or 0)}"


def _file_and_line(at: Location) -> str:
    return f"{at.file}:{at.line}" if at.line else at.file
