"""What a Pulumi stack has recorded and what it is told, read by the Pulumi command."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import click

from infra.apply.settings import stack_config
from infra.apply.stack_config import StackConfig
from infra.apply.stack_state import StackState
from infra.model.record import SetupRecord
from toolchain import ToolchainError, ensure_pulumi

_NAMESPACE = "headwater:"


def recorded_setups(stack: str, project: Path) -> Mapping[str, SetupRecord]:
    """Return application id → record; raises `click.ClickException` when Pulumi cannot show the state."""
    return exported_setups(_shown(project, stack, "state", "stack", "export"), f"stack {stack}")


def configured(stack: str, project: Path) -> StackConfig:
    """Return the stack's settings, secrets left out; raises `click.ClickException` like `recorded_setups`."""
    shown = json.loads(_shown(project, stack, "settings", "config", "--json"))
    told = {
        key.removeprefix(_NAMESPACE): setting for key, setting in shown.items() if key.startswith(_NAMESPACE)
    }
    secrets = {key for key, setting in told.items() if setting.get("secret")}
    values = {key: setting.get("value", "") for key, setting in told.items()}
    return stack_config(values, secrets=secrets, file=f"Pulumi.{stack.rpartition('/')[2]}.yaml")


def _shown(project: Path, stack: str, what: str, *arguments: str) -> str:
    try:
        pulumi = ensure_pulumi()
    except ToolchainError as error:
        raise click.ClickException(str(error)) from error
    answer = subprocess.run(
        [pulumi.cli, *arguments, "--stack", stack],
        cwd=project,
        # The user is logged in there, not in a home of ours.
        env={**pulumi.environment(), "PULUMI_HOME": str(pulumi.login_home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise click.ClickException(
            f"Pulumi cannot show the {what} of stack {stack}:\n  {answer.stderr.strip()}\n"
            "  Name the folder of Pulumi.yaml by --project, and log in to the stack's backend: pulumi login"
        )
    return answer.stdout


def exported_setups(text: str, origin: str) -> Mapping[str, SetupRecord]:
    """Read what `pulumi stack export` printed; raises `click.ClickException` that names `origin`."""
    try:
        resources = (json.loads(text)["deployment"] or {}).get("resources") or ()
        return StackState.of({resource["urn"]: resource for resource in resources}).records
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise click.ClickException(
            f"{origin} is no exported state of a stack.\n  Write one: pulumi stack export --file state.json"
        ) from error
