"""The state and settings of a Pulumi stack, read with the Pulumi CLI."""

import json
from pathlib import Path

import click

from infra.apply.settings import stack_config
from infra.apply.stack_config import StackConfig
from infra.apply.stack_state import StackState
from toolchain import PulumiToolchain, ToolchainError, ensure_pulumi
from toolchain.sessions import Finished, run_in_session

_NAMESPACE = "headwater:"


def read_state(stack: str, project: Path) -> StackState:
    """Return the state of a stack.

    Raises:
        click.ClickException: Pulumi cannot show the state.
    """
    return parse_state(_pulumi_output(project, stack, "state", "stack", "export"), f"stack {stack}")


def read_config(stack: str, project: Path, *, with_secrets: bool = False) -> StackConfig:
    """Return the stack's settings, by default without the values of secrets.

    Raises:
        click.ClickException: Pulumi cannot show the settings.
    """
    options = ("--show-secrets",) if with_secrets else ()
    shown = json.loads(_pulumi_output(project, stack, "settings", "config", "--json", *options))
    settings = {
        key.removeprefix(_NAMESPACE): setting for key, setting in shown.items() if key.startswith(_NAMESPACE)
    }
    secrets = {key for key, setting in settings.items() if setting.get("secret")}
    values = {key: setting.get("value", "") for key, setting in settings.items()}
    return stack_config(values, secrets=secrets, file=f"Pulumi.{stack.rpartition('/')[2]}.yaml")


def run_pulumi(
    pulumi: PulumiToolchain, project: Path, *arguments: str, timeout_seconds: float | None = None
) -> Finished:
    """Run the CLI with the login of the user, not that of the toolchain.

    Raises:
        subprocess.TimeoutExpired: It did not end in time.
    """
    return run_in_session(
        [pulumi.cli, *arguments],
        folder=project,
        environment={**pulumi.environment(), "PULUMI_HOME": str(pulumi.login_home)},
        timeout_seconds=timeout_seconds,
    )


def _pulumi_output(project: Path, stack: str, what: str, *arguments: str) -> str:
    try:
        pulumi = ensure_pulumi()
    except ToolchainError as error:
        raise click.ClickException(str(error)) from error
    answer = run_pulumi(pulumi, project, *arguments, "--stack", stack)
    if answer.code:
        shown = answer.error.strip()
        advice = _EMPTY_ATTRIBUTES if "failed to load checkpoint: EOF" in shown else _LOG_IN
        raise click.ClickException(f"Pulumi cannot show the {what} of stack {stack}:\n  {shown}\n  {advice}")
    return answer.output


_LOG_IN = "Set --project to the folder of Pulumi.yaml, and log in to the stack's backend: pulumi login"
_EMPTY_ATTRIBUTES = (
    "Pulumi was killed while it wrote the file `.attrs` next to the state. The state itself is complete.\n"
    "  Delete the empty file: find FOLDER/.pulumi -name '*.attrs' -size 0 -delete\n"
    "  FOLDER is the folder of the backend (file://FOLDER). To prevent this error, log in with the URL\n"
    "  file://FOLDER?metadata=skip"
)


def parse_state(text: str, origin: str) -> StackState:
    """Return the state in the output of `pulumi stack export`.

    Raises:
        click.ClickException: `text` is not an exported state; the message names `origin`.
    """
    try:
        resources = (json.loads(text)["deployment"] or {}).get("resources") or ()
        return StackState.of({resource["urn"]: resource for resource in resources})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise click.ClickException(
            f"{origin} is not an exported stack state.\n  Create one: pulumi stack export --file state.json"
        ) from error
