"""Checks of permissions: answers of brokers to requests that change nothing; what pull requests can reach."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from headwater.doctor.findings import Check, Finding, Section
from headwater.model.acls import Operation
from headwater.model.problems import first_names

_MOST_NAMES = 3


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
    LIST_ACLS = "list-acls"
    ALTER_ACLS = "alter-acls"
    READ_GROUPS = "read-groups"
    WRITE_TRANSACTIONS = "transactional-ids"


@attrs.frozen
class _Text:
    """A permission in the words of Kafka's ACLs; `action` is what needs it."""

    operation: str
    resource: str
    action: str


_TEXTS = {
    Right.DESCRIBE: _Text("Describe", "topic", "see which topics exist, and their partition counts"),
    Right.CREATE: _Text("Create", "topic", "create internal topics and sinks"),
    Right.ALTER: _Text("Alter", "topic", "add partitions"),
    Right.ALTER_CONFIGS: _Text("AlterConfigs", "topic", "change settings of topics"),
    Right.DESCRIBE_GROUPS: _Text("Describe", "group", "see whether applications are running"),
    Right.LIST_ACLS: _Text("Describe", "cluster", "see which ACLs exist"),
    Right.ALTER_ACLS: _Text("Alter", "cluster", "grant and revoke the ACLs of documents"),
    Right.READ_GROUPS: _Text("Read", "group", "commit offsets"),
    Right.WRITE_TRANSACTIONS: _Text("Write", "transactional id", "process exactly once"),
}
CLUSTER_RIGHTS: Mapping[Right, Operation] = {
    Right.LIST_ACLS: Operation.DESCRIBE,
    Right.ALTER_ACLS: Operation.ALTER,
}
"""Operations on the cluster; they are needed only if documents have `acls`."""
REQUIRED: Mapping[Purpose, Sequence[Right]] = {
    Purpose.PLAN: (Right.DESCRIBE, Right.DESCRIBE_GROUPS, Right.LIST_ACLS),
    Purpose.UP: (
        *(Right.DESCRIBE, Right.CREATE, Right.ALTER, Right.ALTER_CONFIGS),
        *(Right.DESCRIBE_GROUPS, Right.LIST_ACLS, Right.ALTER_ACLS),
    ),
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
    has_acls: bool = False
    """Whether a document has `acls`."""


def permission_findings(facts: PermissionFacts) -> Iterator[Finding]:
    """Yield the findings about what the user may do on the cluster."""
    if not facts.has_authorizer:
        yield Check(Section.PERMISSIONS, "authorizer").ok(
            "the brokers have no authorizer: all users have all permissions"
        )
        return
    for right in REQUIRED[facts.purpose]:
        if right not in CLUSTER_RIGHTS:
            yield _check_right(right, facts)
        elif facts.has_acls:
            yield _check_cluster_right(right, facts)


def _check_cluster_right(right: Right, facts: PermissionFacts) -> Finding:
    check, text = Check(Section.PERMISSIONS, right.value), _TEXTS[right]
    if facts.denied.get(right):
        return check.error(
            f"The brokers deny {text.operation} on the cluster.",
            why=f"Documents have `acls`. Without this permission, this user cannot {text.action}.",
            fix=f"Grant this user {text.operation} on the cluster. {_acls_text(facts)}",
        )
    return check.ok(f"this user can {text.action}")


def _check_right(right: Right, facts: PermissionFacts) -> Finding:
    check, text = Check(Section.PERMISSIONS, right.value), _TEXTS[right]
    if names := facts.denied.get(right):
        plural = "" if len(names) == 1 else "s"
        # Permissions for the names of applications are enough: this name is only an example.
        report = check.warning if facts.is_example else check.error
        return report(
            f"The brokers deny {text.operation} on {text.resource}{plural} {_list_names(names)}.",
            why=f"Without this permission, this user cannot {text.action}.",
            fix=f"{_scope_text(facts)}Grant this user {text.operation} on the {text.resource}{plural}. "
            + _acls_text(facts),
        )
    if reason := facts.unknown.get(right):
        return check.unknown(
            f"It is not known whether this user can {text.action}: {reason}.",
            fix=f"If a run is denied it, grant this user {text.operation} on {text.resource}s. "
            + _acls_text(facts),
        )
    count = facts.checked.get(right, 0)
    where = "an example name" if facts.is_example else f"{count} name{'' if count == 1 else 's'}"
    return check.ok(f"this user can {text.action} (checked with {where})")


def _list_names(names: Sequence[str]) -> str:
    return first_names(sorted(names), _MOST_NAMES)


def _scope_text(facts: PermissionFacts) -> str:
    return "Use --stack to check the names of its applications. " if facts.is_example else ""


def _acls_text(facts: PermissionFacts) -> str:
    option = "" if facts.purpose is Purpose.RUN else f" --self --for {facts.purpose}"
    return f"`headwater acls topologies/{option} --principal User:NAME` prints all that is needed."


_WORKFLOWS = Check(Section.STACK, "workflows")
_STATE = Check(Section.STACK, "secrets-in-state")
_OF_PULL_REQUESTS = re.compile(
    r"^\s*(?:on:.*|- *)?\bpull_request(?:_target)?\b|merge_request_event", re.MULTILINE
)
_RUNS_PULUMI = re.compile(r"\bpulumi (?:preview|up|stack|refresh)\b")
_COMPARES_TEXTS = re.compile(r"\bdiff\b.*\bshown\.md\b")
_NAME_ONLY = re.compile(r"\bheadwater(?:\[\w+\])? *(?:[=~]=|[<>]=?) *\d")
_SCRIPT_OF_A_SERVER = re.compile(r"\bcurl\b[^\n]*\| *(?:ba)?sh\b")
_CREATE_AGAIN = (
    "Create the workflows of this version (`headwater new` in an empty folder), and copy them. Then create "
    "the environment `records` for the default branch, and remove PULUMI_* from the environment `preview` "
    "(see docs/gitops.md)."
)


@attrs.frozen(kw_only=True)
class SeparationFacts:
    """What shows whether pull requests can reach secrets.

    `workflows` is file → text. `stored_secrets` are secrets of the provider that are in the state, but not in
    the settings of the stack.
    """

    workflows: Mapping[str, str] = attrs.field(factory=dict)
    stored_secrets: Sequence[str] = ()
    has_state: bool = False


def separation_findings(facts: SeparationFacts) -> Iterator[Finding]:
    """Yield the findings about what a pull request can reach: secrets in workflows and in the state."""
    found = [finding for file, text in facts.workflows.items() for finding in _of_workflow(file, text)]
    yield from found
    if facts.workflows and not found:
        yield _WORKFLOWS.ok("no code of a pull request runs where secrets are")
    if facts.stored_secrets:
        yield _STATE.error(
            f"The state contains {', '.join(facts.stored_secrets)} of the run that has written it.",
            why="An earlier version stored the secrets of the environment in the state. Everyone who can "
            "read the backend and has the passphrase can read them, such as the author of a pull request "
            "whose preview had both.",
            fix="Run `pulumi up` with this version, which removes them. Then change these secrets: older "
            "states and backups of the backend still contain them.",
        )
    elif facts.has_state:
        yield _STATE.ok("no secret of the environment")


def _of_workflow(file: str, text: str) -> Iterator[Finding]:
    if _OF_PULL_REQUESTS.search(text) and _RUNS_PULUMI.search(_before_the_merge(text)):
        yield _WORKFLOWS.error(
            f"{file} runs Pulumi for pull requests.",
            why="Pulumi runs the program and the plugins of the pull request, with the backend and the "
            "passphrase of the stack. Its author can read every secret of the state, and replace the state.",
            fix=_CREATE_AGAIN + " Change all secrets that the state or the environment `preview` has had.",
        )
    if _COMPARES_TEXTS.search(text):
        yield _WORKFLOWS.error(
            f"{file} compares the texts of two plans before `pulumi up`.",
            why="The texts are shortened: of a long plan, changes after the approval are not noticed.",
            fix=_CREATE_AGAIN,
        )
    if _NAME_ONLY.search(text):
        yield _WORKFLOWS.error(
            f"{file} installs Headwater by its name.",
            why="The name is not registered in the public package index. Whoever registers it gets the "
            "secrets.",
            fix="Set HEADWATER to the URL of the wheel with its hash, and copy this version's workflows.",
        )
    if _SCRIPT_OF_A_SERVER.search(text):
        yield _WORKFLOWS.warning(
            f"{file} runs a script that it downloads, without a hash.",
            why="Whoever controls the server or the connection gets the secrets of the job.",
            fix=_CREATE_AGAIN,
        )


def _before_the_merge(text: str) -> str:
    """Return the jobs of a file that pull requests start; on GitLab, a file also has other jobs."""
    if "merge_request_event" not in text:
        return text
    jobs = re.split(r"^(?=[\w.:-]+:\s*$)", text, flags=re.MULTILINE)
    return "".join(job for job in jobs if "merge_request_event" in job)
