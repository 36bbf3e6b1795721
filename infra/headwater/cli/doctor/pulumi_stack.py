"""Observes a stack: its state, settings and lock files, and whether its documents follow its policies."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import attrs
import yaml

from headwater.cli.stack import parse_state, run_pulumi
from headwater.doctor.stack import Lock, PolicyFacts, StackFacts
from headwater.kafka import Connection
from headwater.model.policies import DriftTolerance
from headwater.model.problems import Problem, ProblemsError, errors
from headwater.pulumi.planning import plan_stack
from headwater.pulumi.settings import StackSettings, stack_settings
from headwater.pulumi.stack_config import NAMESPACE, SECRETS, select_own_keys
from headwater.pulumi.stack_state import StackState
from headwater.toolchain import PulumiToolchain

_NO_ANSWER = "the cluster did not answer"
_SCHEME = "file://"


@attrs.frozen
class BackendFiles:
    """The files of a stack. `folder` is `.pulumi` in the folder of the backend."""

    folder: Path
    project: str
    stack: str

    @classmethod
    def from_url(cls, url: str, base: Path, project: str, stack: str) -> "BackendFiles | None":
        """Return the files of a stack, None if the backend is not in files; `base` is for relative paths."""
        if not url.startswith(_SCHEME):
            return None
        path = Path(url.removeprefix(_SCHEME).partition("?")[0]).expanduser()
        return cls((base / path).absolute() / ".pulumi", project, stack.rpartition("/")[2])

    def empty_attributes(self) -> tuple[str, ...]:
        """Return the empty files `.attrs` next to the state of the stack."""
        found = self.folder.joinpath("stacks").rglob(f"{self.stack}.json*.attrs")
        return tuple(
            str(file) for file in sorted(found) if self._is_own(file.parent) and file.stat().st_size == 0
        )

    def locks(self) -> tuple[Lock, ...]:
        found = sorted(self.folder.joinpath("locks").rglob("*.json"))
        return tuple(
            _read_lock(file)
            for file in found
            if file.parent.name == self.stack and self._is_own(file.parent.parent)
        )

    def _is_own(self, folder: Path) -> bool:
        """Return whether a folder belongs to the project; older backends have no folders of projects."""
        return folder.name in (self.project, "stacks", "locks")


def _read_lock(file: Path) -> Lock:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        pid, host = int(content["pid"]), str(content["hostname"])
        owner = f"{content['username']}@{host} (process {pid})"
        since = str(content["timestamp"])[:19]
    except (OSError, ValueError, KeyError, TypeError):
        return Lock(file=str(file), owner="an unknown user", since="an unknown time", is_running=None)
    return Lock(file=str(file), owner=owner, since=since, is_running=_is_running(pid, host))


def _is_running(pid: int, host: str) -> bool | None:
    if host != socket.gethostname():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_PULUMI_SECONDS = 60
_PROVIDER = "pulumi:providers:kafka"


@attrs.frozen
class ObservedStack:
    """The facts, and the settings with documents and connection; None if Pulumi cannot show the stack."""

    facts: StackFacts
    settings: StackSettings | None = None
    state: StackState | None = None
    stored_secrets: tuple[str, ...] = ()
    """Secrets of the provider that the state has and the settings of the stack do not have."""


class _FailedError(Exception):
    """Pulumi did not answer; the message is what it printed."""


def observe_stack(pulumi: PulumiToolchain, stack: str, project: Path) -> ObservedStack:
    """Read the stack with the Pulumi CLI; each command ends after a minute at the latest."""
    try:
        url = str(json.loads(_pulumi_output(pulumi, project, "whoami", "--verbose", "--json"))["url"])
    except (_FailedError, ValueError, KeyError) as error:
        return ObservedStack(StackFacts(name=stack, error=_first_lines(error)))
    files = BackendFiles.from_url(url, project, _project_name(project), stack)
    facts = StackFacts(
        name=stack,
        backend=_without_credentials(url),
        is_in_files=files is not None,
        writes_attributes=files is not None and "metadata=skip" not in url,
        empty_attributes=files.empty_attributes() if files else (),
        locks=files.locks() if files else (),
    )
    try:
        exported_text = _pulumi_output(pulumi, project, "stack", "export", "--stack", stack)
        exported = json.loads(exported_text)
        shown = json.loads(
            _pulumi_output(pulumi, project, "config", "--json", "--show-secrets", "--stack", stack)
        )
    except (_FailedError, ValueError) as error:
        return ObservedStack(attrs.evolve(facts, error=_first_lines(error)))
    settings = _read_settings(shown, stack, project)
    facts = attrs.evolve(
        facts,
        pending=tuple(_pending_operations(exported)),
        problems=settings.problems,
        applications=len(settings.documents),
    )
    return ObservedStack(
        facts,
        settings,
        state=parse_state(exported_text, f"stack {stack}"),
        stored_secrets=tuple(_stored_secrets(exported, shown)),
    )


def _pulumi_output(pulumi: PulumiToolchain, project: Path, *arguments: str) -> str:
    try:
        done = run_pulumi(pulumi, project, *arguments, "--non-interactive", timeout_seconds=_PULUMI_SECONDS)
    except subprocess.TimeoutExpired:
        raise _FailedError(f"pulumi {arguments[0]} did not answer within {_PULUMI_SECONDS} s") from None
    if done.code:
        raise _FailedError(done.error.strip() or done.output.strip())
    return done.output


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


def _read_settings(shown: Mapping[str, Any], stack: str, project: Path) -> StackSettings:
    own = select_own_keys(shown)
    with chdir(project):  # paths of documents and policies are relative to the project
        return stack_settings(
            {key: str(setting.get("value", "")) for key, setting in own.items()},
            secrets=[key for key, setting in own.items() if setting.get("secret")],
            environment=os.environ,
            file=f"Pulumi.{stack.rpartition('/')[2]}.yaml",
        )


def _stored_secrets(exported: Mapping[str, Any], shown: Mapping[str, Any]) -> Iterator[str]:
    for resource in (exported.get("deployment") or {}).get("resources") or ():
        if resource.get("type") == _PROVIDER:
            stored = {**(resource.get("inputs") or {}), **(resource.get("outputs") or {})}
            yield from (key for key in sorted(SECRETS & stored.keys()) if f"{NAMESPACE}{key}" not in shown)


def workflow_texts(project: Path) -> Mapping[str, str]:
    """Return the workflows of Headwater in a repository: path → text."""
    files = [
        *sorted(project.glob(".github/workflows/headwater-*.y*ml")),
        project / ".gitlab/headwater.gitlab-ci.yml",
    ]
    texts = {}
    for file in files:
        with suppress(OSError, UnicodeDecodeError):
            texts[file.relative_to(project).as_posix()] = file.read_text(encoding="utf-8")
    return texts


def _pending_operations(exported: Mapping[str, Any]) -> Iterator[str]:
    for operation in (exported.get("deployment") or {}).get("pending_operations") or ():
        name = str(operation["resource"]["urn"]).rpartition("::")[2]
        yield f"{name} ({operation['type']})"


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


def _project_name(project: Path) -> str:
    try:
        content = yaml.safe_load((project / "Pulumi.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    return str(content.get("name", "")) if isinstance(content, dict) else ""


def observe_policies(
    target: Connection, observed: ObservedStack, *, is_connected: bool = True
) -> PolicyFacts | None:
    """Plan the stack on the cluster of `target`; None if the settings of the stack are not known.

    Blocks on requests to the cluster, each with a timeout; with `is_connected` False, none is sent. Nothing
    is changed. With an error of the settings or documents, nothing is planned: a policy or a document may be
    missing.
    """
    if observed.settings is None or observed.state is None:
        return None
    rules = [each.rule for each in observed.settings.policy.policies]
    count = sum(not isinstance(rule, DriftTolerance) for rule in rules)
    if found := errors(observed.settings.problems):
        return PolicyFacts(policies=count, reason=_reason_of(found))
    reason = _NO_ANSWER
    if is_connected:
        try:
            planned = plan_stack(attrs.evolve(observed.settings, connection=target), observed.state)
        except ProblemsError as error:
            reason = _reason_of(error.problems)
        else:
            if planned.plan is not None:
                return PolicyFacts(policies=count, problems=planned.plan.problems, is_planned=True)
            reason = _reason_of(errors(planned.problems))
    return PolicyFacts(policies=count, reason=reason if count else "")


def _reason_of(problems: Sequence[Problem]) -> str:
    """Return the summary of the first problem, with its location."""
    if not problems:
        return _NO_ANSWER
    where = f" ({problems[0].location})" if problems[0].location else ""
    return problems[0].summary + where
