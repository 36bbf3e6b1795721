"""The workflow files pass the linters of the forges and follow security rules."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.toolchain.programs import ACTIONLINT_VERSION, GO_MODULES, ensure_actionlint
from tests.workflows.scripts import GITHUB, GITLAB, WORKFLOWS, read

_BIN = Path(sys.prefix) / "bin"
_PINNED = re.compile(r"uses: [\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
_SECRET = "${{ secrets."


def _succeeds(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _jobs() -> list[Any]:
    return [
        pytest.param(job, id=f"{file.stem}-{name}")
        for file in GITHUB
        for name, job in read(file)["jobs"].items()
    ]


@pytest.mark.slow
def test_actionlint_and_shellcheck_pass() -> None:
    shellcheck = shutil.which("shellcheck", path=str(_BIN))
    assert shellcheck is not None
    _succeeds(ensure_actionlint(), "-shellcheck", shellcheck, "-pyflakes=", *GITHUB)


@pytest.mark.parametrize("schema", ["github-workflows", "gitlab-ci"])
def test_files_match_the_schemas_of_the_forges(schema: str) -> None:
    files = GITHUB if schema == "github-workflows" else [GITLAB]
    transform = ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    _succeeds(_BIN / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", *transform, *files)


@pytest.mark.slow
def test_the_scripts_for_gitlab_pass_shellcheck(tmp_path: Path) -> None:
    for name, job in read(GITLAB).items():
        lines = [
            line
            for part in ("before_script", "script", "after_script")
            for line in (job.get(part, ()) if isinstance(job, dict) else ())
            if line  # what `!reference` names is read as an empty list
        ]
        if lines:
            script = tmp_path / f"{name.replace(':', '-')}.sh"
            script.write_text("#!/bin/bash\nset -eo pipefail\n" + "\n".join(lines) + "\n")
            # The pipeline sets the variables. Lists without quotes are split on purpose.
            _succeeds(_BIN / "shellcheck", "--exclude=SC2153,SC2154", script)


@pytest.mark.parametrize("file", GITHUB, ids=lambda file: file.stem)
def test_actions_are_pinned_and_default_permissions_are_read_only(file: Path) -> None:
    uses = [line.strip().removeprefix("- ") for line in file.read_text().splitlines() if "uses:" in line]
    assert uses
    assert all(_PINNED.match(line) for line in uses), uses
    workflow = read(file)
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in workflow["on"]
    assert workflow["concurrency"]


@pytest.mark.parametrize("job", _jobs())
def test_jobs_with_secrets_have_an_environment_and_no_write_permissions(job: dict[str, Any]) -> None:
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    assert all("${{" not in script for script in scripts), "a title or branch name must not become code"
    assert _SECRET not in str(job.get("env"))
    holders = [step for step in job["steps"] if _SECRET in str(step)]
    assert all("run" in step for step in holders), "only our own scripts get secrets"
    assert "environment" in job or not holders
    assert "environment" not in job or "write" not in job.get("permissions", {}).values()
    assert job["timeout-minutes"] <= 60


def test_forks_run_only_the_check_without_a_cluster() -> None:
    preview = read(WORKFLOWS / "github" / "headwater-preview.yml")["jobs"]
    assert "secrets." not in str(preview["check"])
    assert "if" not in preview["check"]
    assert "head.repo.full_name == github.repository" in preview["preview"]["if"]
    assert preview["comment"]["needs"] == "preview"
    for name, job in read(GITLAB).items():
        if isinstance(job, dict) and "environment" in job:
            for rule in job["rules"]:
                is_merge = "merge_request_event" in rule["if"]
                assert not is_merge or "SOURCE_PROJECT_ID == $CI_PROJECT_ID" in rule["if"], name


def _environment_of(job: dict[str, Any]) -> str:
    environment = job.get("environment", "")
    return str(environment["name"] if isinstance(environment, dict) else environment)


@pytest.mark.parametrize("job", _jobs())
def test_each_environment_has_only_the_secrets_that_it_needs(job: dict[str, Any]) -> None:
    """A pull request can use `preview`; the others are restricted to the default branch."""
    secrets = set(re.findall(r"secrets\.(\w+)", str(job)))
    environment = _environment_of(job)
    backend, reader = (
        {"PULUMI_BACKEND_URL", "PULUMI_ACCESS_TOKEN"},
        {"HEADWATER_SASL_USERNAME", "HEADWATER_SASL_PASSWORD"},
    )
    assert (
        secrets
        == {
            "": set(),
            "alerts": {"CHAT_WEBHOOK"},
            "preview": reader,
            "records": backend,
            "production": {*backend, *reader, "PULUMI_CONFIG_PASSPHRASE"},
        }[environment]
    )


def _jobs_of_pull_requests() -> list[Any]:
    github = read(WORKFLOWS / "github" / "headwater-preview.yml")["jobs"]
    gitlab = {
        name: job
        for name, job in read(GITLAB).items()
        if isinstance(job, dict) and "merge_request_event" in str(job.get("rules"))
    }
    return [pytest.param(job, id=name) for name, job in {**github, **gitlab}.items()]


@pytest.mark.parametrize("job", _jobs_of_pull_requests())
def test_jobs_of_pull_requests_run_no_code_of_the_pull_request(job: dict[str, Any]) -> None:
    """Pulumi would run the program, and load plugins, backend and secrets provider of the project."""
    commands = str([step.get("run") for step in job["steps"]] if "steps" in job else job["script"])
    assert not re.search(r"\bpulumi\b", commands)
    assert not re.search(r"\bpython\b(?! -I -m venv)", commands)
    assert _environment_of(job) in ("", "preview", "alerts")
    assert job.get("extends", ".headwater") == ".headwater"
    names = [step.get("name", step.get("uses", "")) for step in job.get("steps", ())]
    checkouts = [number for number, name in enumerate(names) if "checkout" in name]
    assert all(names.index("Install") < number for number in checkouts), "no file of it when pip runs"


def test_the_records_of_one_stack_are_not_restored_for_another() -> None:
    """A second stack has copies of the files; GitHub's cache finds a key by its beginning."""
    caches = [
        step
        for file in GITHUB
        for job in read(file)["jobs"].values()
        for step in job["steps"]
        if "actions/cache/" in step.get("uses", "")
    ]

    def of_stack(name: str, stack: str) -> set[str]:
        keys = {step["with"][name] for step in caches if name in step["with"]}
        return {key.replace("${{ env.STACK }}", stack) for key in keys}

    (restored,) = of_stack("restore-keys", "shop")
    others = [key for stack in ("shop-eu", "shop.2", "shop_a") for key in of_stack("key", stack)]
    assert len(others) == 9
    assert all(key.startswith(restored) for key in of_stack("key", "shop"))
    assert not [key for key in others if key.startswith(restored)]


def test_copies_of_a_workflow_with_other_names_do_not_wait_for_each_other() -> None:
    assert all("${{ github.workflow }}" in read(file)["concurrency"]["group"] for file in GITHUB)


def _texts() -> list[Path]:
    return [*GITHUB, GITLAB]


@pytest.mark.parametrize("file", _texts(), ids=lambda file: file.stem)
def test_everything_that_is_installed_is_pinned_by_its_hash(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    settings = read(file)["variables" if file == GITLAB else "env"]
    assert settings["HEADWATER"] == "", "no default: the name is not registered in the package index"
    assert not re.search(r"pip install (?!--no-deps --only-binary :all: --require-hashes )", text)
    assert "| sh" not in text, "no script of a server is run"
    assert not re.search(r"image: (?!\$PYTHON_IMAGE)", text)


def test_go_module_has_the_declared_actionlint_version() -> None:
    locked = (GO_MODULES / "actionlint" / "go.mod").read_text()
    assert f"github.com/rhysd/actionlint v{ACTIONLINT_VERSION} " in locked
