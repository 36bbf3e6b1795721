"""The state and settings of a Pulumi stack, read with the Pulumi CLI; `headwater records` prints records."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from headwater.cli.console import json_text, write_text
from headwater.cli.options import output_option, project_option
from headwater.kafka.input_files import LARGEST_STATE, read_input
from headwater.model.problems import Problem, ProblemsError, errors
from headwater.pulumi.settings import stack_config
from headwater.pulumi.stack_config import StackConfig, select_own_keys
from headwater.pulumi.stack_state import (
    ACL_TYPE,
    COMPONENT_TYPE,
    SETUP_TYPE,
    TOPIC_TYPE,
    UNREADABLE_STATE,
    OtherResource,
    Properties,
    StackState,
    exported_resources,
)
from headwater.spec.files import STACK_FILE, read_regular_file
from headwater.spec.yaml_text import read_yaml
from headwater.toolchain import PulumiToolchain, ensure_pulumi
from headwater.toolchain.sessions import Finished, run_in_session

_SECRET_SIGNATURE = "4dabf18193072939515e22adb298388d"  # noqa: S105 - the key of encrypted values in a state
_RECORD = frozenset(
    {
        "topics",
        "initialProcessors",
        "initialBySource",
        "generatedNames",
        "origins",
        "clusterId",
        "kafkaStreams",
        "settings",
        "retired",
        "released",
        "stackId",
        "repairs",
        "repaired",
        "changed",
    }
)
_KEPT = {
    COMPONENT_TYPE: _RECORD,
    SETUP_TYPE: _RECORD,
    TOPIC_TYPE: frozenset({"name", "partitions", "replicationFactor", "config"}),
    ACL_TYPE: frozenset(
        {
            "aclPrincipal",
            "aclHost",
            "aclOperation",
            "aclPermissionType",
            "aclResourceType",
            "aclResourceName",
            "resourcePatternTypeFilter",
        }
    ),
}
"""Resource type → the outputs that `StackState` reads."""
_OF_OTHERS = ("custom", "external", "retainOnDelete")
"""What shows whether Pulumi deletes a resource that Headwater has not registered."""


def read_state(stack: str, project: Path) -> StackState:
    """Return the state of a stack; raises `click.ClickException` if Pulumi cannot show it."""
    return parse_state(_exported_state(stack, project), f"stack {stack}")


def read_state_file(path: Path, stack: str | None) -> StackState:
    """Return the state in a file, `-` is standard input. `stack` is the stack that the command line names.

    Raises:
        click.BadParameter: The file of `--stack-state` cannot be read.
        click.ClickException: It has no exported state, or the state of another stack.
    """
    try:
        text = read_input(path, LARGEST_STATE).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise click.BadParameter(f"{path} cannot be read: {reason}.", param_hint="--stack-state") from None
    state = parse_state(text, str(path))
    if stack is not None and state.name and _short_name(state.name) != _short_name(stack):
        raise click.ClickException(
            f"{path} is of stack {state.name}, not of {stack}.\n"
            f"  Write it again: headwater records --stack {stack} --output {path}"
        )
    return state


def _exported_state(stack: str, project: Path) -> str:
    """Return the output of `pulumi stack export`, in which secrets are encrypted."""
    return _pulumi_output(project, stack, "state", "stack", "export")


def read_config(stack: str, project: Path, *, with_secrets: bool = False) -> StackConfig:
    """Return the stack's settings, by default without values of secrets; raises `click.ClickException`."""
    options = ("--show-secrets",) if with_secrets else ()
    shown = json.loads(_pulumi_output(project, stack, "settings", "config", "--json", *options))
    settings = select_own_keys(shown)
    secrets = {key for key, setting in settings.items() if setting.get("secret")}
    values = {key: setting.get("value", "") for key, setting in settings.items()}
    return stack_config(values, secrets=secrets, file=_file_name(stack))


def read_config_file(stack: str, project: Path) -> StackConfig:
    """Return the settings in the file of a stack, without its secrets; raises `ProblemsError`.

    Pulumi is not run, because it would load what the project names: its backend, its secrets provider and its
    plugins.
    """
    project_file = project / "Pulumi.yaml"
    defaults = _settings_in(project_file) if project_file.exists() else {}
    settings = {**defaults, **_settings_in(project / _file_name(stack))}
    secrets = {key for key, value in settings.items() if isinstance(value, dict) and "secure" in value}
    values = {key: "" if key in secrets else _setting_text(value) for key, value in settings.items()}
    return stack_config(values, secrets=secrets, file=_file_name(stack))


def stack_name(stack: str, project: Path) -> str:
    """Return `project/stack` with the name in the file of the project; raises as `read_config_file` does."""
    file = project / "Pulumi.yaml"
    named = str(_read_content(file).get("name") or "") if file.exists() else ""
    return "/".join(part for part in (named, _short_name(stack)) if part)


def _short_name(stack: str) -> str:
    """Return the name of a stack without its organization and project."""
    return stack.rpartition("/")[2]


def _settings_in(file: Path) -> Mapping[str, Any]:
    """Return the settings of Headwater in the file of a stack or a project."""
    config = _read_content(file).get("config")
    texts = {str(key): value for key, value in config.items()} if isinstance(config, dict) else {}
    return {key: _own_value(value) for key, value in select_own_keys(texts).items()}


def _read_content(file: Path) -> Mapping[str, Any]:
    text = read_regular_file(file, STACK_FILE)
    if isinstance(text, Problem):
        raise ProblemsError([text])
    raws, problems = read_yaml(text, str(file))
    if errors(problems):
        raise ProblemsError(problems)
    content = raws[0].data if raws else {}
    return content if isinstance(content, dict) else {}


def _own_value(value: Any) -> Any:  # noqa: ANN401 - a value of YAML
    """Return a value, which a project may also declare as `value` or `default`."""
    if isinstance(value, dict) and not value.keys() - {"type", "description", "default", "value", "secret"}:
        return value.get("value", value.get("default"))
    return value


def _setting_text(value: Any) -> str:  # noqa: ANN401 - a value of YAML
    """Return a value as Pulumi passes it to a program."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if value is not None else ""


def _file_name(stack: str) -> str:
    return f"Pulumi.{_short_name(stack)}.yaml"


def run_pulumi(
    pulumi: PulumiToolchain, project: Path, *arguments: str, timeout_seconds: float | None = None
) -> Finished:
    """Run the CLI with the login of the user, not of the toolchain; raises `subprocess.TimeoutExpired`."""
    return run_in_session(
        [pulumi.cli, *arguments],
        folder=project,
        environment={**pulumi.environment(), "PULUMI_HOME": str(pulumi.login_home)},
        timeout_seconds=timeout_seconds,
    )


def _pulumi_output(project: Path, stack: str, what: str, *arguments: str) -> str:
    answer = run_pulumi(ensure_pulumi(), project, *arguments, "--stack", stack)
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

    Raises `click.ClickException` if `text` is not an exported state; the message names `origin`.
    """
    try:
        return StackState.from_outputs(exported_resources(text))
    except UNREADABLE_STATE as error:
        raise click.ClickException(
            f"{origin} is not an exported stack state.\n  Create one: pulumi stack export --file state.json"
        ) from error


def setup_records(text: str, origin: str) -> dict[str, Any]:
    """Return the part of an exported state that a plan needs, in the same form; it contains no secret.

    Only the outputs that Headwater itself wrote are kept, and of those no value that Pulumi has encrypted.
    Raises as `parse_state` does.
    """
    state = parse_state(text, origin)
    others = {other.urn: other for other in state.others}
    kept = [
        {
            "urn": urn,
            "type": resource["type"],
            **{name: resource[name] for name in _OF_OTHERS if urn in others and name in resource},
            "outputs": _kept_outputs(resource, others.get(urn)),
        }
        for urn, resource in exported_resources(text).items()
        if resource["type"] in _KEPT or (urn in others and others[urn].may_be_deleted)
    ]
    return {"version": 3, "deployment": {"resources": kept}}


def _kept_outputs(resource: Properties, other: OtherResource | None) -> dict[str, Any]:
    """Return the outputs that `StackState` reads; of resources of other providers, the name of a topic."""
    if (kept := _KEPT.get(resource["type"])) is None:
        return {"name": other.topic} if other is not None and other.topic is not None else {}
    outputs = resource.get("outputs") or {}
    return {name: value for name, value in outputs.items() if name in kept and not _has_ciphertext(value)}


def _has_ciphertext(value: Any) -> bool:  # noqa: ANN401 - a value of JSON
    if isinstance(value, dict):
        return _SECRET_SIGNATURE in value or any(map(_has_ciphertext, value.values()))
    return isinstance(value, list) and any(map(_has_ciphertext, value))


@click.command()
@click.option("--stack", metavar="STACK", required=True, help="The Pulumi stack.")
@project_option
@output_option
def records(*, stack: str, project: Path, output: Path | None) -> None:
    """Write the setup records of a stack to a file, without its secrets.

    `headwater plan`, `drift` and `change` read them with --stack-state. A pipeline for pull requests then
    needs neither the backend of the stack nor its passphrase. Reads the state with `pulumi stack export`,
    which decrypts nothing. Connects to no cluster.

    \b
    Examples:
      headwater records --stack production --output records.json
      headwater records --stack production | headwater plan topologies/ --stack production --stack-state -
    """
    write_text(json_text(setup_records(_exported_state(stack, project), f"stack {stack}")), output)
