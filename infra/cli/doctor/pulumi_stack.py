"""Observe a Pulumi stack: its settings and state, and the files of a backend in files."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import attrs

from infra.apply.settings import StackSettings, stack_settings
from infra.cli.stack import run_pulumi
from infra.doctor.stack import Lock, StackFacts
from toolchain import PulumiToolchain

_SECONDS = 60
_NAMESPACE = "headwater:"
_FILES = "file://"


@attrs.frozen
class ObservedStack:
    """The facts, and the settings with documents and connection; None if Pulumi cannot show the stack."""

    facts: StackFacts
    settings: StackSettings | None = None


class _FailedError(Exception):
    """Pulumi did not answer; the message is what it printed."""


def observe_stack(pulumi: PulumiToolchain, stack: str, project: Path) -> ObservedStack:
    """Read the stack with the Pulumi CLI; each command ends after a minute at the latest."""
    try:
        url = str(json.loads(_run(pulumi, project, "whoami", "--verbose", "--json"))["url"])
    except (_FailedError, ValueError, KeyError) as error:
        return ObservedStack(StackFacts(name=stack, error=_first_lines(error)))
    folder = _folder(url, project)
    facts = StackFacts(
        name=stack,
        backend=_without_credentials(url),
        is_in_files=folder is not None,
        writes_attributes=folder is not None and "metadata=skip" not in url,
        empty_attributes=tuple(map(str, _empty_attributes(folder))) if folder else (),
        locks=tuple(_locks(folder, stack)) if folder else (),
    )
    try:
        exported = json.loads(_run(pulumi, project, "stack", "export", "--stack", stack))
        shown = json.loads(_run(pulumi, project, "config", "--json", "--show-secrets", "--stack", stack))
    except (_FailedError, ValueError) as error:
        return ObservedStack(attrs.evolve(facts, error=_first_lines(error)))
    settings = _settings(shown, stack, project)
    facts = attrs.evolve(
        facts,
        pending=tuple(_pending(exported)),
        problems=settings.problems,
        applications=len(settings.documents),
    )
    return ObservedStack(facts, settings)


def _run(pulumi: PulumiToolchain, project: Path, *arguments: str) -> str:
    try:
        done = run_pulumi(pulumi, project, *arguments, "--non-interactive", timeout_seconds=_SECONDS)
    except subprocess.TimeoutExpired:
        raise _FailedError(f"pulumi {arguments[0]} did not answer within {_SECONDS} s") from None
    if done.code:
        raise _FailedError(done.error.strip() or done.output.strip())
    return done.output


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


def _settings(shown: Mapping[str, Any], stack: str, project: Path) -> StackSettings:
    own = {
        key.removeprefix(_NAMESPACE): setting for key, setting in shown.items() if key.startswith(_NAMESPACE)
    }
    with chdir(project):  # paths of documents and policies are relative to the project
        return stack_settings(
            {key: str(setting.get("value", "")) for key, setting in own.items()},
            secrets=[key for key, setting in own.items() if setting.get("secret")],
            environment=os.environ,
            file=f"Pulumi.{stack.rpartition('/')[2]}.yaml",
        )


def _pending(exported: Mapping[str, Any]) -> Iterator[str]:
    for operation in (exported.get("deployment") or {}).get("pending_operations") or ():
        name = str(operation["resource"]["urn"]).rpartition("::")[2]
        yield f"{name} ({operation['type']})"


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


def _folder(url: str, project: Path) -> Path | None:
    """Return the folder of a backend in files, None for other backends."""
    if not url.startswith(_FILES):
        return None
    path = url.removeprefix(_FILES).partition("?")[0]
    return (project / Path(path).expanduser()).absolute() / ".pulumi"


def _empty_attributes(folder: Path) -> Sequence[Path]:
    return sorted(file for file in folder.rglob("*.attrs") if file.stat().st_size == 0)


def _locks(folder: Path, stack: str) -> Iterator[Lock]:
    """Yield the locks of the stack. `stack` may be a name, or organization/project/stack."""
    name = stack.rpartition("/")[2]
    for file in sorted((folder / "locks").rglob("*.json")):
        if file.parent.name == name:
            yield _lock(file)


def _lock(file: Path) -> Lock:
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
