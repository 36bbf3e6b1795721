"""A run of `up` stops if a newer commit of its branch changes a file whose changes start a run."""

from pathlib import Path
from typing import Any

import pytest

from tests.workflows.scripts import (
    GITLAB,
    WORKFLOWS,
    bash,
    clean_environment,
    clone_without_files,
    commit,
    read,
)

pytestmark = pytest.mark.slow

_STEP = "Refuse an outdated commit"


def _github() -> dict[str, Any]:
    return read(WORKFLOWS / "github" / "headwater-up.yml")


def _checked(forge: str, origin: Path, checkout: Path, head: str) -> tuple[int, str]:
    """Run the check of a run of `head` with the newest commit of `origin`."""
    if forge == "gitlab":
        file = read(GITLAB)
        script = f"set -o pipefail\n{file['headwater:up']['script'][0]}"
        variables = {"PATHS": file["variables"]["PATHS"], "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": head}
    else:
        (step,) = (step for step in _github()["jobs"]["up"]["steps"] if step.get("name") == _STEP)
        script = step["run"]
        variables = {
            "PATHS": _github()["env"]["PATHS"],
            "REPOSITORY": origin.as_uri(),
            "TOKEN": "token",
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_SHA": head,
        }
    return bash(script, checkout, {**clean_environment(), **variables})


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_only_newer_changes_of_files_that_start_a_run_are_refused(forge: str, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    workflow = {"github": ".github/workflows/headwater-up.yml", "gitlab": ".gitlab/headwater.gitlab-ci.yml"}
    watched = (
        "topologies/orders.yaml",
        "topologies/team/payments.yaml",
        "headwater-policies.yaml",
        "Pulumi.production.yaml",
        "__main__.py",
        workflow[forge],
    )
    head = commit(origin, "topologies/orders.yaml")
    for number, file in enumerate(watched):
        checkout = tmp_path / str(number)
        checkout.mkdir()
        clone_without_files(origin, checkout)
        assert _checked(forge, origin, checkout, head) == (0, "")
        for other in ("README.md", "docs/topologies/orders.yaml", "Pulumi/notes.yaml"):
            commit(origin, other)
        assert _checked(forge, origin, checkout, head) == (0, "")
        newest = commit(origin, file)
        code, text = _checked(forge, origin, checkout, head)
        assert (code, "has newer changes" in text) == (1, True), (file, text)
        head = newest


def test_the_files_that_are_compared_are_those_whose_changes_start_a_run() -> None:
    github, gitlab = _github(), read(GITLAB)
    assert github["env"]["PATHS"].split() == github["on"]["push"]["paths"]
    assert gitlab["variables"]["PATHS"].split() == gitlab[".changes"]
    assert gitlab["headwater:up"]["rules"][0]["changes"] == gitlab[".changes"]
