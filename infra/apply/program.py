"""The Pulumi program: everything is decided first, registration comes last.

A problem found after the first registration would come too late: with `--skip-preview` topics had changed.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pulumi
import pulumi_kafka
from pulumi.runtime.config import CONFIG
from tenacity import retry, stop_after_attempt, wait_exponential

from infra.apply.cluster_writer import ClusterWriter, KafkaClusterWriter
from infra.apply.component import InternalTopics, Target
from infra.apply.guard import deletion_guard
from infra.apply.messages import tell_plan, tell_problems
from infra.apply.ordering import register_all
from infra.apply.planning import plan_stack
from infra.apply.provider_connection import connect_for_deletions
from infra.apply.settings import StackSettings, stack_settings
from infra.apply.stack_state import StackState, acl_name
from infra.model.problems import Problem, errors
from infra.observe import ClusterReader, Connection, KafkaClusterReader
from infra.planner import ActionKind, ApplicationPlan, Plan
from infra.planner.acls import AclActionKind

_NAMESPACE = "headwater:"
_SECRETS = frozenset({"sasl_password", "client_key", "client_key_passphrase"})


async def run_program() -> None:
    """Deploy what the stack's configuration says. To be handed to `pulumi.run`."""
    await deploy(configured_settings())


async def deploy(
    settings: StackSettings,
    opts: pulumi.ResourceOptions | None = None,
    *,
    reader_for: Callable[[Connection], ClusterReader] = KafkaClusterReader,
    writer_for: Callable[[Connection], ClusterWriter] = KafkaClusterWriter,
) -> Mapping[str, InternalTopics]:
    """Plan and, if there is no problem, register; return application id → component.

    Any Pulumi program may await this once, in what it hands to `pulumi.run`; `opts` go to the components.
    Raises `pulumi.RunError` before the first registration if anything is wrong, each problem being told
    beforehand.
    """
    state = await read_stack_state()
    planned = plan_stack(settings, state, reader_for)
    tell_problems(planned.problems)
    if planned.plan is None or settings.connection is None or errors(planned.problems):
        raise pulumi.RunError(_refusal(planned.problems))
    writer = writer_for(settings.connection)
    # Not in a preview: whoever reviews a change need not be allowed to make it.
    denied = () if pulumi.runtime.is_dry_run() else await asyncio.to_thread(writer.denials, planned.plan)
    if denied:
        tell_problems(denied)
        raise pulumi.RunError(_refusal(denied))
    target = Target(
        provider=kafka_provider(settings.connection),
        reader=reader_for(settings.connection),
        writer=writer,
        state=state,
    )
    components = _components(planned.plan, target, opts)
    await register_all(components)
    await connect_for_deletions(target.provider, planned.plan)
    return {component.planned.application_id: component for component in components}


def configured_settings() -> StackSettings:
    """Read the stack's `headwater:` keys."""
    every = {**pulumi.runtime.get_config_env(), **CONFIG.get()}
    keys = [key for key in every if key.startswith(_NAMESPACE)]
    return stack_settings(
        {key.removeprefix(_NAMESPACE): str(every[key]) for key in keys},
        secrets=[key.removeprefix(_NAMESPACE) for key in keys if pulumi.runtime.is_config_secret(key)],
        environment=os.environ,
        file=f"Pulumi.{pulumi.get_stack()}.yaml",
    )


async def read_stack_state() -> StackState:
    """Read what earlier runs left behind; the stack's own state is the record."""
    # In a backend of files this is the file that the engine writes when it registers the stack.
    if stack := pulumi.runtime.get_root_resource():
        await stack.urn.future()
    name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    read = retry(stop=stop_after_attempt(4), wait=wait_exponential(multiplier=0.1), reraise=True)(_invoke)
    answer = await read("pulumi:pulumi:readStackResourceOutputs", {"stackName": name})
    return StackState.of(answer["outputs"])


async def _invoke(token: str, arguments: Mapping[str, str]) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await pulumi.runtime.invoke_async(token, dict(arguments))
    return answer


def kafka_provider(connection: Connection) -> pulumi_kafka.Provider:
    """Return the provider for `connection`; its secrets are secrets in the state, too."""
    arguments = connection.provider()
    secrets = {name: pulumi.Output.secret(arguments[name]) for name in _SECRETS & arguments.keys()}
    return pulumi_kafka.Provider("kafka", **{**arguments, **secrets})


def _components(plan: Plan, target: Target, opts: pulumi.ResourceOptions | None) -> list[InternalTopics]:
    """Register a component for each application that keeps a resource, and say what happens to each."""
    # Always there: the engine asks it about resources that this run does not register.
    guard = deletion_guard(set(_deletable(plan)))
    components = {
        application.application_id: InternalTopics(application, target, guard, opts)
        for application in plan.applications
        if not _is_deleted(application)
    }
    for application in plan.applications:
        component = components.get(application.application_id)
        tell_plan(plan, application, component.registration.repairs if component else ())
    return list(components.values())


def _deletable(plan: Plan) -> Iterator[str]:
    """Yield the names of topics and ACLs that the plan removes."""
    yield from (action.name for action in plan.actions if action.kind is ActionKind.DELETE)
    for application in plan.applications:
        revoked = (action.acl for action in application.acls if action.kind is AclActionKind.REVOKE)
        yield from (acl_name(application.application_id, acl) for acl in revoked)


def _is_deleted(application: ApplicationPlan) -> bool:
    """Whether nothing of the application is left to register."""
    is_retired = application.recorded is not None and application.recorded.retired
    is_last = application.compiled is None and is_retired
    return is_last and all(action.kind is ActionKind.DELETE for action in application.actions)


def _refusal(problems: Iterable[Problem]) -> str:
    count = len(errors(problems))
    return f"nothing was changed: {count} problem{'s' if count != 1 else ''}, told above"
