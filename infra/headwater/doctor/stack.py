"""Checks of a Pulumi stack: its backend, its settings, its policies, and what a killed run left behind."""

import shlex
from collections.abc import Iterator, Sequence

import attrs

from headwater.doctor.findings import Check, Finding, Section
from headwater.model.problems import Problem, ProblemCode, errors, first_names

POLICY_CODES = frozenset({ProblemCode.POLICY_VIOLATED, ProblemCode.BLAST_RADIUS})
"""The codes of problems that a policy or a limit of the stack yields."""
_MOST_NAMES = 3


@attrs.frozen(kw_only=True)
class Lock:
    """A lock of Pulumi: who holds it, and whether that process runs (None: on another machine, not known)."""

    file: str
    owner: str
    since: str
    is_running: bool | None


@attrs.frozen(kw_only=True)
class StackFacts:
    """What was observed. `error` is what Pulumi printed when it could not show the stack.

    `backend` is the URL without credentials; only a backend that `is_in_files` shows locks.
    `empty_attributes` are empty files `.attrs` of a backend in files; `writes_attributes` says that Pulumi
    writes such files. `pending` are pending operations.
    """

    name: str
    error: str | None = None
    backend: str = ""
    is_in_files: bool = False
    writes_attributes: bool = False
    empty_attributes: Sequence[str] = ()
    locks: Sequence[Lock] = ()
    pending: Sequence[str] = ()
    problems: Sequence[Problem] = ()
    applications: int = 0


def stack_findings(facts: StackFacts) -> Iterator[Finding]:
    """Yield the findings about the backend and the state of the stack."""
    yield from _check_backend(facts)
    if facts.is_in_files:
        yield _check_attributes(facts)
        yield _check_lock(facts)
    elif facts.error is None:
        yield _check_of("lock").unknown(
            "Only backends in files show whether a stack is locked.",
            fix="If a run is refused because the stack is locked, and no other run is active: pulumi cancel "
            f"{_of_stack(facts)}",
        )
    if facts.error is None:
        yield _check_pending(facts)
        yield from _check_settings(facts)


def _check_of(name: str) -> Check:
    return Check(Section.STACK, name)


def _check_backend(facts: StackFacts) -> Iterator[Finding]:
    check = _check_of("backend")
    if facts.error is None:
        yield check.ok(f"stack {facts.name} in {facts.backend}")
    elif not facts.empty_attributes:
        yield check.error(
            f"Pulumi cannot show stack {facts.name}: {facts.error}",
            why="`preview` and `up` need the settings and the state of the stack.",
            fix="Set --project to the folder of Pulumi.yaml, log in to the backend (pulumi login, or "
            "PULUMI_BACKEND_URL), and set PULUMI_CONFIG_PASSPHRASE. If the stack does not exist: "
            f"pulumi stack init {facts.name}",
        )


def _check_attributes(facts: StackFacts) -> Finding:
    check = _check_of("state-files")
    if empty := facts.empty_attributes:
        return check.error(
            f"{len(empty)} empty file{'' if len(empty) == 1 else 's'} `.attrs` next to the state: "
            + ", ".join(empty[:_MOST_NAMES])
            + ".",
            why="Pulumi was killed while it wrote them. No command can read the state (failed to load "
            "checkpoint: EOF), which itself is complete.",
            fix=f"Delete them: rm {' '.join(empty)}. Log in with `?metadata=skip` at the end of the URL.",
        )
    if facts.writes_attributes:
        return check.warning(
            f"The backend {facts.backend} is used without `metadata=skip`.",
            why="Pulumi writes files `.attrs` next to the state. If it is killed then, they may be empty.",
            fix=f"Log in again: pulumi login '{facts.backend}?metadata=skip'",
        )
    return check.ok("no empty files of a killed run")


def _check_lock(facts: StackFacts) -> Finding:
    check = _check_of("lock")
    if not facts.locks:
        return check.ok("the stack is not locked")
    lock = facts.locks[0]
    text = f"The stack is locked by {lock.owner} since {lock.since}"
    if lock.is_running:
        return check.warning(
            f"{text}, and this process is running.",
            why="Other runs are refused until it ends.",
            fix="Wait until it has ended.",
        )
    if lock.is_running is None:
        return check.warning(
            f"{text}, on another machine.",
            why="Other runs are refused while it runs. If it was killed, the lock remains.",
            fix=f"Check whether it is running. If it is not: {_RELEASE.format(_of_stack(facts))}.",
        )
    return check.error(
        f"{text}, but this process has ended.",
        why="A killed run left the lock: each further run is refused (the stack is currently locked).",
        fix=f"Run {_RELEASE.format(_of_stack(facts))}: it completes the rest.",
    )


_RELEASE = "`pulumi cancel {0}`, then `pulumi up {0}`"


def _of_stack(facts: StackFacts) -> str:
    """Return the option that names the stack: another one may be selected."""
    return f"--stack {shlex.quote(facts.name)}"


def _check_pending(facts: StackFacts) -> Finding:
    check = _check_of("pending-operations")
    if not facts.pending:
        return check.ok("none")
    count = len(facts.pending)
    return check.warning(
        f"{count} pending operation{'' if count == 1 else 's'} of an interrupted run: "
        + first_names(facts.pending, _MOST_NAMES)
        + ".",
        why="It is not known whether the topics were created. Each `up` shows a warning.",
        fix=f"Run `pulumi up {_of_stack(facts)}`, which imports or creates them. Then clear the warning: "
        f"pulumi refresh {_of_stack(facts)} --clear-pending-creates",
    )


def _check_settings(facts: StackFacts) -> Iterator[Finding]:
    for problem in facts.problems:
        yield _check_of("settings").of_problem(problem)
    if not errors(facts.problems):
        count = facts.applications
        yield _check_of("settings").ok(
            f"settings and documents of {count} application{'' if count == 1 else 's'} are valid"
        )


@attrs.frozen(kw_only=True)
class PolicyFacts:
    """What was observed: how many policies and limits the stack has, and the problems of its plan.

    With a `reason`, the policies were not checked because of it; then some may not be counted. `is_planned`:
    the problems are known.
    """

    policies: int
    is_planned: bool = False
    problems: Sequence[Problem] = ()
    reason: str = ""


def topic_findings(facts: PolicyFacts) -> Iterator[Finding]:
    """Yield a finding for each setting or number of replicas that harms topics, as the plan reports it.

    The brokers' defaults of settings are checked with the cluster (`broker_defaults`).
    """
    check = Check(Section.STACK, "topic-settings")
    found = [
        each
        for each in facts.problems
        if each.code is ProblemCode.REPLICATION_FACTOR
        or (each.code is ProblemCode.MISCONFIGURED_INTERNAL_TOPIC and each.topic is not None)
    ]
    for problem in found:
        yield check.of_problem(problem)
    if facts.is_planned and not found:
        yield check.ok("no setting of a single topic harms it")


def policy_findings(facts: PolicyFacts) -> Iterator[Finding]:
    """Yield a finding for each violation; without a violation, yield a finding that says so."""
    check = Check(Section.STACK, "policies")
    if facts.reason:
        yield check.unknown(
            f"Not checked: {facts.reason}",
            fix="Fix the other findings first. Without a cluster: headwater validate --policies FILE",
        )
        return
    if not facts.policies:
        yield check.ok("the stack has no policies")
        return
    violations = [problem for problem in facts.problems if problem.code in POLICY_CODES]
    for problem in violations:
        yield check.of_problem(problem)
    if not violations:
        count = facts.policies
        noun = "policy or limit is" if count == 1 else "policies and limits are"
        yield check.ok(f"{count} {noun} followed")
