"""Run the steps of workflow files like a forge: with a folder and an environment for each job."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import yaml

WORKFLOWS = Path(__file__).parents[2] / "infra" / "headwater" / "cli" / "new" / "files" / "workflows"
GITHUB = sorted((WORKFLOWS / "github").glob("*.yml"))
GITLAB = WORKFLOWS / "gitlab" / "headwater.gitlab-ci.yml"
_NOT_COMMITTED = ("home", "state")
"""Folders of the stack of a test: the state, and the CLI's own files with plugins of 40 MB."""
_EXPRESSION = re.compile(r"\$\{\{ (.+?) \}\}")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # with libyaml, if it is there
    """Reads GitLab's tag `!reference` as an empty list, and GitHub's key `on` as a string."""


_Loader.add_constructor("!reference", lambda *_: [])
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool" or first in "tf"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(file: Path) -> dict[str, Any]:
    return dict(yaml.load(file.read_text(encoding="utf-8"), _Loader))  # noqa: S506 - derived from the safe one


@attrs.frozen
class Done:
    code: int
    text: str
    outputs: Mapping[str, str] = attrs.field(factory=dict)

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.text}"


@attrs.frozen
class Pipeline:
    """`variables` are the runner's; `settings` override the variables that users edit at the top of a file.

    `artifacts` is the folder of files for later jobs.
    """

    checkout: Path
    artifacts: Path
    variables: Mapping[str, str]
    settings: Mapping[str, str]

    def github(self, name: str, job: str, context: Mapping[str, str]) -> Done:
        """Run the steps of a job; `context` has the values of all expressions in them."""
        workflow = read(WORKFLOWS / "github" / f"headwater-{name}.yml")
        specified = workflow["jobs"][job]
        folder = self._folder(
            checked_out=any("checkout" in step.get("uses", "") for step in specified["steps"])
        )
        notes = {key: self.artifacts / key for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in notes.values():
            file.unlink(missing_ok=True)
            file.touch()
        common = {
            **self.variables,
            **workflow["env"],
            **self.settings,
            **{k: str(v) for k, v in notes.items()},
        }
        code, text = 0, ""
        for step in specified["steps"]:
            if code and step.get("if") != "always()":
                continue
            if "artifact" in step.get("uses", ""):
                self._pass_on(step, folder)
            elif "actions/cache/" in step.get("uses", ""):
                run = {"github.run_id": "1", "github.run_attempt": "1"}
                self._cache(step, folder, {**run, **context, "env.STACK": common["STACK"]})
            if "run" not in step or step["name"] == "Install":
                continue
            own = {key: _resolved(value, context) for key, value in step.get("env", {}).items()}
            assert "${{" not in step["run"]
            failed, output = bash(step["run"], folder, {**common, **own})
            code = code or failed
            text += output
        lines = notes["GITHUB_OUTPUT"].read_text().splitlines()
        return Done(code, text, dict(line.split("=", 1) for line in lines))

    def gitlab(self, job: str, variables: Mapping[str, str] | None = None) -> Done:
        file = read(GITLAB)
        specified = file[job]
        own = specified.get("variables", {})
        folder = self._folder(checked_out=own.get("GIT_STRATEGY") != "none")
        for needed in specified.get("needs", ()):
            shutil.copytree(self.artifacts / needed, folder, dirs_exist_ok=True)
        script = "\n".join(specified["script"])
        environment = {**self.variables, **file["variables"], **self.settings, **own, **(variables or {})}
        code, text = bash(f"set -o pipefail\n{script}", folder, environment)
        artifacts = specified.get("artifacts", {})
        if code == 0 or artifacts.get("when") == "always":
            kept = self.artifacts / job
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir()
            for name in artifacts.get("paths", ()):
                if (folder / name).exists():
                    shutil.copy(folder / name, kept)
        return Done(code, text)

    def _folder(self, *, checked_out: bool) -> Path:
        """Return the folder of a job: a copy of the project, or empty."""
        folder = self.artifacts / "job"
        shutil.rmtree(folder, ignore_errors=True)
        if checked_out:
            shutil.copytree(self.checkout, folder, ignore=shutil.ignore_patterns(*_NOT_COMMITTED))
        else:
            folder.mkdir()
        return folder

    def _pass_on(self, step: Mapping[str, Any], folder: Path) -> None:
        kept = self.artifacts / step["with"]["name"]
        if "download" in step["uses"]:
            shutil.copytree(kept, folder / step["with"].get("path", ""), dirs_exist_ok=True)
            return
        kept.mkdir(exist_ok=True)
        for name in step["with"]["path"].split():
            shutil.copy(folder / name, kept)

    def _cache(self, step: Mapping[str, Any], folder: Path, expressions: Mapping[str, str]) -> None:
        """Save a folder in the cache of the default branch, or restore the newest one with the prefix."""
        path, key, prefix = (
            _resolved(step["with"].get(name, ""), expressions) for name in ("path", "key", "restore-keys")
        )
        cache = self.artifacts / "cache"
        if "save" in step["uses"]:
            if (folder / path).exists():
                shutil.copytree(folder / path, cache / quote(key, safe=""), dirs_exist_ok=True)
            return
        found = sorted(cache.glob(f"{quote(prefix, safe='')}*"), key=lambda saved: saved.stat().st_mtime_ns)
        if found:
            shutil.copytree(found[-1], folder / path, dirs_exist_ok=True)


def _resolved(value: str, context: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: context[found[1]], value)


def bash(script: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a script like the forges; return its exit code and its output."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-c", script],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )
    return done.returncode, done.stdout


def commit(repository: Path, file: str) -> str:
    """Commit a new text of `file` to a repository, which is created if necessary; return the commit."""
    repository.mkdir(parents=True, exist_ok=True)
    path = repository / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(path.read_text() + "more\n" if path.exists() else "some\n")
    user = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for arguments in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", file),
        (*user, "commit", "--quiet", "--message", f"Change {file}"),
    ):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def clone_without_files(repository: Path, folder: Path) -> None:
    """Make an existing folder a clone with the newest commit of a repository, and keep its files."""
    clone = ("git", "clone", "--quiet", "--depth=1", "--bare", repository.as_uri(), str(folder / ".git"))
    subprocess.run(clone, check=True)
    subprocess.run(["git", "config", "core.bare", "false"], cwd=folder, check=True)


def clean_environment() -> dict[str, str]:
    """Return the environment without variables that name a cluster, a backend or a forge."""
    prefixes = ("PULUMI_", "KAFKA_", "HEADWATER_", "GITHUB_", "GITLAB_", "CI_")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
