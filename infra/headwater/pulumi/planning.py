"""Plan a stack, compare the plan with the approved plan, and check what the run registers.

A run registers each topic once, and Pulumi deletes no topic of a resource that Headwater has not registered.
"""

import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import attrs

from headwater.kafka import ClusterReader, Connection, KafkaClusterReader
from headwater.kafka.input_files import LARGEST_REPORT, read_text
from headwater.model.problems import Problem, ProblemCode, ProblemsError, Severity, first_names
from headwater.model.records import StackIdentity
from headwater.operations.observation import observe_cluster
from headwater.operations.planning import plan_documents
from headwater.planner import AclActionKind, ActionKind, Plan
from headwater.planner.phrases import listed
from headwater.planner.run import Run
from headwater.planner.upgrade import with_recorded_versions
from headwater.pulumi.registration import Registration, TopicResource
from headwater.pulumi.settings import APPROVED_PLAN, StackSettings
from headwater.pulumi.stack_state import OtherResource, Properties, StackState, urn_name, with_exported
from headwater.report.plan_json import ApprovedPlan, plan_digest, read_approved, topic_differences


@attrs.frozen
class Planned:
    """The plan of a stack, None if the cluster could not be read; `problems` include problems of settings."""

    plan: Plan | None
    problems: tuple[Problem, ...]
    run: Run | None = None
    """What the plan was made of, to check deletions again with the evidence of a later time."""


def plan_stack(
    settings: StackSettings,
    state: StackState,
    reader_for: Callable[[Connection], ClusterReader] = KafkaClusterReader,
    *,
    stack: StackIdentity | None = None,
    is_only_program: bool = False,
    export: Callable[[], Mapping[str, Properties] | None] = lambda: None,
) -> Planned:
    """Return the plan; errors that a user can fix are in `problems`.

    With a `stack`, the ownership records of the cluster are compared. `is_only_program`: no other code
    registers resources in the stack. `export` reads the whole state, if `state` does not show which of its
    other resources Pulumi would delete; None if it cannot be read.
    """
    started = time.monotonic()
    if settings.connection is None:
        return Planned(None, settings.problems)
    try:
        observed = observe_cluster(
            reader_for(settings.connection),
            with_recorded_versions(settings.documents, state.records),
            state.records,
            with_ownership=settings.has_ownership_records and stack is not None,
        )
    except ProblemsError as error:
        return Planned(None, (*settings.problems, *error.problems))
    policy = attrs.evolve(settings.policy, stack=stack)
    planned = plan_documents(observed, policy, round((time.monotonic() - started) * 1000))
    run = Run(observed.compiled, (), observed.snapshot, state.records, policy)
    others = state.others
    relevant = relevant_resources(others, planned, is_only_program=is_only_program)
    if any(other.is_deleted is None for other in relevant) and (exported := export()) is not None:
        others = with_exported(others, exported)
    refused = other_resources(others, planned, is_only_program=is_only_program)
    return Planned(planned, (*settings.problems, *planned.problems, *refused), run)


_MOST_TOPICS = 10


def approval_problem(plan: Plan, approved: str | None, stack: str = "STACK") -> Problem | None:
    """Return the problem of a plan that is not the approved one; None if it is, or if any plan may be made.

    All values of the plan are compared, with the ids of existing topics. The run then makes this plan: it
    does not plan again.

    Args:
        plan: The plan of this run.
        approved: A digest, or the path of a file with the JSON of a plan. An empty text approves nothing: a
            pipeline that lost the digest must not apply any plan.
        stack: The name of the stack, as `headwater plan --stack` takes it.
    """
    if approved is None:
        return None
    command = f"`headwater plan FILES --stack {shlex.quote(stack)} --format json --output plan.json`"
    try:
        expected = _read_approved_plan(approved)
    except (OSError, ValueError) as error:
        return _not_approved(
            f"The approved plan cannot be read: {getattr(error, 'strerror', None) or error}.",
            expected="a digest, or a file of `headwater plan --format json`",
            found=f"{approved}, in the folder {Path.cwd()}" if approved else "nothing",
            why="It is not known which plan was approved, so none is applied.",
            fix=f"Set {APPROVED_PLAN} to the path of the file that {command} has written, or to the `digest` "
            "in it. To apply any plan, unset the variable.",
        )
    found = plan_digest(plan)
    if found == expected.digest:
        return None
    return _not_approved(
        "This is not the plan that was approved." + _list_differences(expected, plan),
        expected=expected.digest,
        found=found,
        why="The cluster, the stack or the documents have changed since the approval.",
        fix=f"Plan again with all documents of the stack ({command}), and have the new plan approved. If it "
        "differs again, the user of the plan may not read all that the user of `pulumi up` reads: grant "
        f"`headwater acls FILES --self --for plan --principal User:NAME`.",
    )


def _read_approved_plan(approved: str) -> ApprovedPlan:
    if not approved:
        raise ValueError(f"{APPROVED_PLAN} is empty")
    if approved.startswith("sha256:"):
        return read_approved(approved)
    return read_approved(read_text(Path(approved), LARGEST_REPORT))


def _list_differences(approved: ApprovedPlan, plan: Plan) -> str:
    names = topic_differences(approved, plan)
    if not names:
        return ""
    return f" Different: {first_names(names, _MOST_TOPICS)}."


def _not_approved(summary: str, *, expected: str, found: str, why: str, fix: str) -> Problem:
    return Problem(
        code=ProblemCode.PLAN_NOT_APPROVED,
        summary=summary,
        expected=expected,
        found=found,
        why=why,
        fix=fix,
    )


def registered_twice(registrations: Mapping[str, Registration]) -> Iterator[Problem]:
    """Yield a problem for each resource that several registrations name.

    The engine refuses the second registration of a URN when it has made earlier changes already. The planner
    yields problems for all plans that contain a topic twice, so this check finds only its mistakes.
    `registrations` is application id → all resources that the run registers for it.
    """
    owners: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for application, registration in registrations.items():
        for resource in registration.resources:
            kind = "Topic" if isinstance(resource, TopicResource) else "ACL"
            owners[kind, resource.name].append(application)
            alias = getattr(resource, "alias", None)
            if alias is not None:
                owners[kind, urn_name(alias)].append(application)
    for (kind, name), applications in sorted(owners.items()):
        if len(applications) > 1:
            yield Problem(
                code=ProblemCode.CONFLICTING_PARTITIONS,
                summary=f"{kind} {name} would be registered {len(applications)} times with Pulumi.",
                topic=name if kind == "Topic" else None,
                expected="one application that registers it",
                found=listed(applications),
                why="Pulumi refuses the second registration after it has made other changes.",
                fix="Declare it in the document of one application only. If no document declares it twice, "
                "report this as a defect of Headwater.",
            )


_ENDED = (ActionKind.DELETE, ActionKind.RELEASE)
_ENDED_ACLS = (AclActionKind.REVOKE, AclActionKind.RELEASE)


def relevant_resources(
    others: Collection[OtherResource], plan: Plan, *, is_only_program: bool
) -> list[OtherResource]:
    """Return the resources that Pulumi deletes, or whose topic or ACL the plan manages, too.

    `others` are the resources in the state that Headwater has not registered. Without `is_only_program`,
    other code may declare resources itself, so only resources of topics and ACLs of the plan are relevant.
    """
    managed = {action.name for action in plan.actions if action.kind not in _ENDED}
    acls = {
        action.acl for part in plan.applications for action in part.acls if action.kind not in _ENDED_ACLS
    }
    return [
        other
        for other in sorted(others, key=lambda each: each.urn)
        if other.is_deleted is not False
        and (is_only_program or other.topic in managed or (other.acl is not None and other.acl in acls))
    ]


def other_resources(
    others: Collection[OtherResource], plan: Plan, *, is_only_program: bool
) -> Iterator[Problem]:
    """Yield a problem for each of `relevant_resources` with which Pulumi would delete something."""
    for other in relevant_resources(others, plan, is_only_program=is_only_program):
        if other.may_be_deleted:
            if other.topic is not None:
                yield _topic_problem(other, is_only_program=is_only_program)
            else:
                yield _unregistered_problem(other) if is_only_program else _second_acl(other)


_ONLY_OWN = "only resources that Headwater has registered"
_OF_ONLY_PROGRAM = (
    "Headwater adopts internal topics without `pulumi import`. If the program of the stack declares the "
    "topic, keep the resource, and call `deploy` in the program instead of `run_program`."
)


def _topic_problem(other: OtherResource, *, is_only_program: bool) -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary=f"The state of the stack has a resource of topic {other.topic} that Headwater has not "
        "registered.",
        topic=other.topic,
        expected=_ONLY_OWN
        if is_only_program
        else "one resource of the topic, which Headwater has registered",
        found=other.urn,
        why="Pulumi deletes a topic with its records if the program no longer declares its resource."
        + ("" if is_only_program else " If it does, two resources change the same topic."),
        fix=f"Remove the resource from the state: `pulumi state delete --force '{other.urn}'`. The topic "
        "stays. If Pulumi lists resources that depend on it, remove them from the state first. "
        "Do not run `pulumi state unprotect`: the next `pulumi up` would delete the topic. "
        + (_OF_ONLY_PROGRAM if is_only_program else "Remove it from your program, too."),
    )


def _unregistered_problem(other: OtherResource) -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary=f"The state of the stack has a resource of type {other.type} that Headwater has not "
        "registered.",
        expected=_ONLY_OWN,
        found=other.urn,
        why="The program of the stack declares nothing else, so Pulumi would delete what the resource "
        "describes.",
        fix=f"To keep it, remove the resource from the state: `pulumi state delete --force '{other.urn}'`. "
        f"To delete it, run `pulumi state unprotect '{other.urn}'` and `pulumi destroy --target "
        f"'{other.urn}'`. If the program of the stack declares it, call `deploy` in the program instead of "
        "`run_program`.",
    )


def _second_acl(other: OtherResource) -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary="The state of the stack has a resource of an ACL that Headwater manages, too.",
        expected="one resource of the ACL, which Headwater has registered",
        found=other.urn,
        why="Pulumi revokes the ACL if the program no longer declares its resource; the next `pulumi up` "
        "grants it again.",
        fix=f"Remove the resource from the state with `pulumi state delete --force '{other.urn}'` and from "
        "your program. The ACL stays.",
        severity=Severity.WARNING,
    )
