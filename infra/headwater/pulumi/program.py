"""The Pulumi program: plan first, report all problems, then register the resources.

A problem must be found before the first registration, because `--skip-preview` changes topics at once.
"""

import asyncio
import atexit
import gc
import os
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import pulumi
from pulumi.runtime.config import CONFIG
from tenacity import retry, stop_after_attempt, wait_exponential

from headwater.kafka import ClusterReader, Connection, KafkaClusterReader
from headwater.model.problems import Problem, ProblemsError, Severity, errors
from headwater.model.records import SetupRecord, StackIdentity
from headwater.planner import ActionKind, ApplicationPlan, Plan
from headwater.planner.data_risks import data_risks
from headwater.planner.phrases import counted, few_names
from headwater.pulumi.cluster_writer import (
    ClusterWriter,
    KafkaClusterWriter,
    claim_applications,
    connect_for_deletions,
    kafka_provider,
    protect_records,
    record_ownership,
)
from headwater.pulumi.component import InternalTopics, Target
from headwater.pulumi.controller_watch import controller_watch
from headwater.pulumi.guard import delete_retired_topics, plan_guard
from headwater.pulumi.ordering import register_all
from headwater.pulumi.planning import approval_problem, plan_stack, registered_twice
from headwater.pulumi.registration import Registration, registration_of
from headwater.pulumi.settings import StackSettings, stack_settings
from headwater.pulumi.stack_config import NAMESPACE, ResourceInputs, select_own_keys
from headwater.pulumi.stack_state import (
    UNREADABLE_STATE,
    Properties,
    StackState,
    exported_resources,
)
from headwater.report import problem_text
from headwater.report.plan_comment.inputs import RISKS_HEAD
from headwater.report.plan_text import plan_messages

_MOST_PROBLEMS = 100
_EXPORT_SECONDS = 60
_NOT_EXPORTED = (
    "`pulumi stack export` failed, so it is not known which resources in the state Pulumi would delete. "
    "Topics and other resources of the Kafka provider count as deleted, other resources do not ({})"
)
_LOG = {Severity.ERROR: pulumi.log.error, Severity.WARNING: pulumi.log.warn, Severity.INFO: pulumi.log.info}


async def run_program() -> None:
    """Deploy the stack of the current Pulumi run; the argument for `pulumi.run`."""
    # The garbage collections at the end of the process take a seventh of its CPU time and free nothing.
    atexit.register(gc.freeze)
    await deploy(configured_settings(), is_only_program=True)


async def deploy(
    settings: StackSettings,
    opts: pulumi.ResourceOptions | None = None,
    *,
    reader_for: Callable[[Connection], ClusterReader] = KafkaClusterReader,
    writer_for: Callable[[Connection], ClusterWriter] = KafkaClusterWriter,
    is_only_program: bool = False,
) -> Mapping[str, InternalTopics]:
    """Plan and, if there is no error, register all resources; return application id → component.

    Any Pulumi program can await this once inside `pulumi.run`.

    Args:
        settings: The settings of the stack.
        opts: Resource options for the components.
        reader_for: Makes the reader of a cluster.
        writer_for: Makes the writer of a cluster.
        is_only_program: Whether the program registers nothing else: then a resource in the state that
            Headwater has not registered is an error, because Pulumi would delete it.

    Raises:
        pulumi.RunError: There are errors, which are logged before, or a registration failed.
    """
    state = await read_stack_state()
    stack = _identity_of(state)
    planned = plan_stack(
        settings,
        state,
        reader_for,
        stack=stack,
        is_only_program=is_only_program,
        export=export_stack_state,
    )
    _log_problems(planned.problems)
    if planned.plan is None or settings.connection is None or errors(planned.problems):
        raise pulumi.RunError(_refusal_text(planned.problems))
    registrations = _decide_registrations(planned.plan, settings.approved_plan, state)
    connection = settings.connection
    reader, writer = reader_for(connection), writer_for(connection)
    await _check_and_claim(planned.plan, reader, writer)
    target = Target(
        provider=kafka_provider(connection, settings.secret_variables),
        reader=reader,
        writer=writer,
        state=state,
        stack_id=stack.id,
    )
    _log_risks(planned.plan)
    _log_kept_resources(registrations, planned.plan, state)
    guard = plan_guard(planned, target, lambda: reader_for(connection))
    components = _register_components(planned.plan, registrations, target, guard, opts)
    recorded = await _register_and_watch(planned.plan, components, writer)
    if not pulumi.runtime.is_dry_run():
        await asyncio.to_thread(_record_ownership_or_fail, planned.plan, recorded, writer)
        await asyncio.to_thread(delete_retired_topics, planned, writer, lambda: reader_for(connection))
    await connect_for_deletions(target.provider, planned.plan)
    return {component.planned.application_id: component for component in components}


def _decide_registrations(
    plan: Plan, approved_plan: str | None, state: StackState
) -> Mapping[str, Registration]:
    """Return application id → how to register its resources.

    Raises:
        pulumi.RunError: The plan is not the approved one, or a resource would be registered twice.
    """
    if (differs := approval_problem(plan, approved_plan, pulumi.get_stack())) is not None:
        _raise_if_any([differs])
    registrations = {
        part.application_id: registration_of(part, state)
        for part in plan.applications
        if not _is_deleted(part)
    }
    _raise_if_any(tuple(registered_twice(registrations)))
    return registrations


async def _check_and_claim(plan: Plan, reader: ClusterReader, writer: ClusterWriter) -> None:
    """Check that the brokers accept the changes; unless it is a preview, claim the applications.

    Raises:
        pulumi.RunError: The brokers refuse a change, or another stack manages an application.
    """
    # A preview needs no permissions: the user who reviews a change may have none to make it.
    is_preview = pulumi.runtime.is_dry_run()
    _raise_if_any(await asyncio.to_thread(writer.find_refusals, plan, with_permissions=not is_preview))
    if is_preview:
        return
    unprotected = await asyncio.to_thread(protect_records, plan, writer)
    _log_problems(unprotected)
    _raise_if_any(errors(unprotected), is_logged=True)
    _raise_if_any(await asyncio.to_thread(claim_applications, plan, reader, writer))


async def _register_and_watch(
    plan: Plan, components: Sequence[InternalTopics], writer: ClusterWriter
) -> Mapping[str, SetupRecord]:
    """Register all resources; report meanwhile if the controller does not answer."""
    changed = next((action.name for action in plan.actions), None)
    if pulumi.runtime.is_dry_run() or not plan.has_changes or changed is None:
        return await register_all(components)
    async with controller_watch(
        partial(writer.controller_problem, changed), lambda problem: _log_problems([problem])
    ):
        return await register_all(components)


def configured_settings(inputs: ResourceInputs | None = None) -> StackSettings:
    """Return the settings in the `headwater:` keys of the current stack; `inputs` replace them."""
    config = {**pulumi.runtime.get_config_env(), **CONFIG.get()}
    own = select_own_keys(config)
    return stack_settings(
        {key: str(value) for key, value in own.items()},
        secrets=[key for key in own if pulumi.runtime.is_config_secret(f"{NAMESPACE}{key}")],
        environment=os.environ,
        file=f"Pulumi.{pulumi.get_stack()}.yaml",
        inputs=inputs or ResourceInputs(),
    )


def _log_problems(problems: Iterable[Problem]) -> None:
    """Log each problem as one message, errors first."""
    ordered = sorted(problems, key=lambda problem: problem.severity is not Severity.ERROR)
    for problem in ordered[:_MOST_PROBLEMS]:
        _LOG[problem.severity](problem_text(problem))
    if (more := len(ordered) - _MOST_PROBLEMS) > 0:
        pulumi.log.warn(f"… {more} more problems; `headwater plan` shows them all")


def _log_risks(plan: Plan) -> None:
    """Log all changes that can lose data or move keys as one message, if there are any."""
    if risks := data_risks(plan):
        lines = (f"  {risk.topic}: {risk.text}" for risk in risks)
        pulumi.log.info("\n".join([RISKS_HEAD, *lines]))


def _log_kept_resources(registrations: Mapping[str, Registration], plan: Plan, state: StackState) -> None:
    """Log what leaves the state and stays on the cluster: Pulumi shows that it is deleted."""
    registered = {topic.name for each in registrations.values() for topic in each.topics}
    deleted = {action.name for action in plan.actions if action.kind is ActionKind.DELETE}
    topics = sorted(state.topics.keys() - registered - deleted)
    planned = {action.acl for part in plan.applications for action in part.acls}
    acls = len(state.acls.keys() - planned)
    if topics or acls:
        kept = ", ".join(
            [*([few_names(topics)] if topics else []), *([counted(acls, "ACL")] if acls else [])]
        )
        pulumi.log.info(
            f"Removed from the state of the stack: {kept}\n"
            "None of them is deleted on the cluster, although Pulumi shows `delete[retain]`."
        )


def _log_interrupted(topics: Sequence[str]) -> None:
    """Log the topics that an interrupted run created and that are not in the state yet, if there are any.

    Pulumi keeps such a creation as a pending operation, and warns about it in every later run.
    """
    if topics:
        pulumi.log.info(
            "These topics were created by a run that was interrupted, and are added to the state now: "
            f"{', '.join(topics)}\n"
            "If Pulumi warns about pending operations, clear them afterwards: "
            f"pulumi refresh --clear-pending-creates --stack {shlex.quote(pulumi.get_stack())}"
        )


async def read_stack_state() -> StackState:
    """Return the records of earlier runs, read from the stack's own state."""
    # A file backend has no state before the engine has registered the stack.
    if stack := pulumi.runtime.get_root_resource():
        await stack.urn.future()
    read = retry(stop=stop_after_attempt(4), wait=wait_exponential(multiplier=0.1), reraise=True)(
        _invoke_function
    )
    answer = await read("pulumi:pulumi:readStackResourceOutputs", {"stackName": _qualified_name()})
    return StackState.from_outputs(answer["outputs"])


def export_stack_state() -> Mapping[str, Properties] | None:
    """Return the resources in the state with all their properties, None if the CLI cannot show them.

    Programs see only the types and outputs of resources. The name of the stack is qualified: without
    organization and project, the CLI may choose another stack.
    """
    try:
        exported = subprocess.run(
            ["pulumi", "stack", "export", "--non-interactive", "--stack", _qualified_name()],
            cwd=pulumi.get_root_directory(),
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=_EXPORT_SECONDS,
        )
        return exported_resources(exported.stdout.decode())
    except (OSError, subprocess.SubprocessError, *UNREADABLE_STATE) as error:
        pulumi.log.warn(_NOT_EXPORTED.format(error))
        return None


async def _invoke_function(token: str, arguments: Mapping[str, str]) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await pulumi.runtime.invoke_async(token, dict(arguments))
    return answer


def _qualified_name() -> str:
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def _identity_of(state: StackState) -> StackIdentity:
    """Return the stack's identity with the id in its state, or a new one."""
    # A preview does not write the state, so it has no id to give.
    new = "" if pulumi.runtime.is_dry_run() else uuid4().hex
    return StackIdentity(state.stack_id or new, _qualified_name(), has_records=bool(state.stack_id))


def _record_ownership_or_fail(plan: Plan, recorded: Mapping[str, SetupRecord], writer: ClusterWriter) -> None:
    try:
        record_ownership(plan, recorded, writer)
    except ProblemsError as error:
        _log_problems(error.problems)
        raise pulumi.RunError("the ownership records are not written: run again") from None


def _raise_if_any(problems: Sequence[Problem], *, is_logged: bool = False) -> None:
    if problems:
        _log_problems(() if is_logged else problems)
        raise pulumi.RunError(_refusal_text(problems))


def _register_components(
    plan: Plan,
    registrations: Mapping[str, Registration],
    target: Target,
    guard: pulumi.ResourceHook,
    opts: pulumi.ResourceOptions | None,
) -> list[InternalTopics]:
    """Register a component for each application with resources, and log the plan."""
    components = {
        application.application_id: InternalTopics(
            application, target, registrations[application.application_id], guard, opts
        )
        for application in plan.applications
        if application.application_id in registrations
    }
    repairs = {
        id_: [f"  outside Pulumi  {repair.name}  {repair.text}" for repair in each.registration.repairs]
        for id_, each in components.items()
    }
    for text in plan_messages(plan, repairs):
        pulumi.log.info(text)
    for application in plan.applications:
        _log_interrupted(_interrupted_topics(application, target.state))
    return list(components.values())


def _interrupted_topics(application: ApplicationPlan, state: StackState) -> list[str]:
    """Return the topics that an interrupted run recorded and created, and that are not in the state."""
    recorded = application.recorded.topics if application.recorded else {}
    return [
        action.name
        for action in application.actions
        if action.live is not None and action.name in recorded and action.name not in state.topics
        if not recorded[action.name].topic_id
    ]


def _is_deleted(application: ApplicationPlan) -> bool:
    """Whether the application has no resources left to register."""
    is_retired = application.recorded is not None and application.recorded.retired
    is_last = application.compiled is None and is_retired
    return is_last and all(action.kind is ActionKind.DELETE for action in application.actions)


def _refusal_text(problems: Iterable[Problem]) -> str:
    count = len(errors(problems))
    return f"nothing was changed: {count} problem{'s' if count != 1 else ''}, listed above"
