"""Checks of the permissions of the user, as the brokers answer requests that change nothing."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from headwater.doctor.findings import Check, Finding, Section

_FEW = 3


class Purpose(StrEnum):
    """What the user is for.

    PLAN reads the cluster (`plan`, `drift`, previews), UP changes topics, RUN runs applications.
    """

    PLAN = "plan"
    UP = "up"
    RUN = "run"


class Right(StrEnum):
    """What a user must be allowed to do; the value is the name of the check."""

    DESCRIBE = "describe-topics"
    CREATE = "create-topics"
    ALTER = "alter-topics"
    ALTER_CONFIGS = "alter-configs"
    DESCRIBE_GROUPS = "describe-groups"
    READ_GROUPS = "read-groups"
    WRITE_TRANSACTIONS = "transactional-ids"


@attrs.frozen
class _Text:
    """`operation` and `resource` in the words of Kafka's ACLs; `action` is what needs the permission."""

    operation: str
    resource: str
    action: str


_TEXTS = {
    Right.DESCRIBE: _Text("Describe", "topic", "see which topics exist, and their partition counts"),
    Right.CREATE: _Text("Create", "topic", "create internal topics and sinks"),
    Right.ALTER: _Text("Alter", "topic", "add partitions"),
    Right.ALTER_CONFIGS: _Text("AlterConfigs", "topic", "change settings of topics"),
    Right.DESCRIBE_GROUPS: _Text("Describe", "group", "see whether applications are running"),
    Right.READ_GROUPS: _Text("Read", "group", "commit offsets"),
    Right.WRITE_TRANSACTIONS: _Text("Write", "transactional id", "process exactly once"),
}
REQUIRED: Mapping[Purpose, Sequence[Right]] = {
    Purpose.PLAN: (Right.DESCRIBE, Right.DESCRIBE_GROUPS),
    Purpose.UP: (Right.DESCRIBE, Right.CREATE, Right.ALTER, Right.ALTER_CONFIGS, Right.DESCRIBE_GROUPS),
    Purpose.RUN: (Right.DESCRIBE, Right.DESCRIBE_GROUPS, Right.READ_GROUPS, Right.WRITE_TRANSACTIONS),
}


@attrs.frozen(kw_only=True)
class PermissionFacts:
    """What the brokers answered: for each right the names that were denied, or why it is not known.

    `checked` is right → number of names. `is_example` says that no document names a topic, and that an
    example name was checked. A cluster that `has_authorizer` False permits everything.
    """

    purpose: Purpose
    denied: Mapping[Right, Sequence[str]] = attrs.field(factory=dict)
    unknown: Mapping[Right, str] = attrs.field(factory=dict)
    checked: Mapping[Right, int] = attrs.field(factory=dict)
    is_example: bool = False
    has_authorizer: bool = True


def permission_findings(facts: PermissionFacts) -> Iterator[Finding]:
    if not facts.has_authorizer:
        yield Check(Section.PERMISSIONS, "authorizer").ok(
            "the brokers have no authorizer: all users have all permissions"
        )
        return
    for right in REQUIRED[facts.purpose]:
        yield _finding(right, facts)


def _finding(right: Right, facts: PermissionFacts) -> Finding:
    check, text = Check(Section.PERMISSIONS, right.value), _TEXTS[right]
    if names := facts.denied.get(right):
        plural = "" if len(names) == 1 else "s"
        # Permissions for the names of applications are enough: this name is only an example.
        report = check.warning if facts.is_example else check.error
        return report(
            f"The brokers deny {text.operation} on {text.resource}{plural} {_listed(names)}.",
            why=f"Without this permission, this user cannot {text.action}.",
            fix=f"{_scope(facts)}Grant this user {text.operation} on the {text.resource}{plural}. "
            + _acls(facts),
        )
    if reason := facts.unknown.get(right):
        return check.unknown(
            f"It is not known whether this user can {text.action}: {reason}.",
            fix=f"If a run is denied it, grant this user {text.operation} on {text.resource}s. "
            + _acls(facts),
        )
    count = facts.checked.get(right, 0)
    where = "an example name" if facts.is_example else f"{count} name{'' if count == 1 else 's'}"
    return check.ok(f"this user can {text.action} (checked with {where})")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _FEW
    return ", ".join(sorted(names)[:_FEW]) + (f" and {more} more" if more > 0 else "")


def _scope(facts: PermissionFacts) -> str:
    return "Use --stack to check the names of its applications. " if facts.is_example else ""


def _acls(facts: PermissionFacts) -> str:
    option = "" if facts.purpose is Purpose.RUN else f" --self --for {facts.purpose}"
    return f"`headwater acls topologies/{option} --principal User:NAME` prints all that is needed."
