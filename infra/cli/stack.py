"""The recorded set-ups of a Pulumi stack, read from its state by the Pulumi command."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import click

from infra.apply.stack_state import StackState
from infra.model.record import SetupRecord
from toolchain import ToolchainError, ensure_pulumi


def recorded_setups(stack: str, project: Path) -> Mapping[str, SetupRecord]:
    """Return application id → record; raises `click.ClickException` when Pulumi cannot show the state."""
    try:
        pulumi = ensure_pulumi()
    except ToolchainError as error:
        raise click.ClickException(str(error)) from error
    answer = subprocess.run(
        [pulumi.cli, "stack", "export", "--stack", stack],
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
            f"Pulumi cannot show the state of stack {stack}:\n  {answer.stderr.strip()}\n"
            "  Name the folder of Pulumi.yaml by --project, and log in to the stack's backend: pulumi login"
        )
    return exported_setups(answer.stdout, f"stack {stack}")


def exported_setups(text: str, origin: str) -> Mapping[str, SetupRecord]:
    """Read what `pulumi stack export` printed; raises `click.ClickException` that names `origin`."""
    try:
        resources = (json.loads(text)["deployment"] or {}).get("resources") or ()
        return StackState.of({resource["urn"]: resource for resource in resources}).records
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise click.ClickException(
            f"{origin} is no exported state of a stack.\n  Write one: pulumi stack export --file state.json"
        ) from error
