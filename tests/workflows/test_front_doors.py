"""The GitHub Action, the GitLab component and the pre-commit hook of this repository check documents."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater.model.problems import Location, Problem, ProblemCode, Severity
from headwater.report.problems import code_quality, github_annotations
from tests.preloaded import folder_of_shims, headwater
from tests.toolchain.programs import ensure_actionlint
from tests.workflows.scripts import bash, clean_environment, read

pytestmark = pytest.mark.slow  # they start many programs

_ROOT = Path(__file__).parents[2]
_ACTION = _ROOT / "action.yml"
_COMPONENT = _ROOT / "templates" / "validate.yml"
_DOCUMENT = """
application: {id: ID}
topology:
  - stream: {topic: SOURCE}
  - groupBy: {key: value.customer, name: by-customer}
  - count: {materialized: counts}
"""
_COMMAND = "from headwater.cli.main import main; main()"
_POLICIES = "version: 1\npolicies:\n  - topicPartitions: {max: 3}\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with one valid document and a policy file."""
    folder = tmp_path / "checkout"
    (folder / "topologies").mkdir(parents=True)
    write(folder, "shop", "orders")
    (folder / "policies.yaml").write_text(_POLICIES)
    return folder


def write(folder: Path, id_: str, source: str, more: str = "") -> None:
    text = _DOCUMENT.replace("ID", id_).replace("SOURCE", source)
    (folder / "topologies" / f"{id_}.yaml").write_text(text + more)


def run_action(checkout: Path, *, is_preloaded: bool = False, **inputs: str) -> tuple[int, str]:
    """Run the step that validates, with the Python of the tests in place of the installed one.

    `is_preloaded`: the command runs without a start of Python.
    """
    action = read(_ACTION)
    runner = checkout.parent / "runner"
    python = runner / "headwater" / "bin" / "python"
    if not python.exists():
        python.parent.mkdir(parents=True)
        command = f'[ "$3" = "{_COMMAND}" ] && shift 3 && exec "{headwater()}" "$@"\n' if is_preloaded else ""
        python.write_text(f'#!/bin/sh\n{command}exec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
    given = {name: each.get("default", "") for name, each in action["inputs"].items()} | inputs
    (step,) = (step for step in action["runs"]["steps"] if step["name"] == "Validate")
    assert "${{" not in step["run"]
    own = {
        key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], value)
        for key, value in step["env"].items()
    }
    return bash(step["run"], checkout, {**clean_environment(), **own, "RUNNER_TEMP": str(runner)})


def component(checkout: Path, **inputs: str) -> dict[str, Any]:
    """Return the job of the component with its inputs filled in."""
    spec, job = _COMPONENT.read_text().split("\n---\n")
    declared = yaml.safe_load(spec)["spec"]["inputs"]
    given = {name: (each or {}).get("default") for name, each in declared.items()} | inputs
    del checkout
    found: dict[str, Any] = yaml.safe_load(
        re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda each: json.dumps(given[each[1]] or ""), job)
    )
    return found


def run_component(checkout: Path, **inputs: str) -> tuple[int, str]:
    (job,) = component(checkout, wheel="https://x/h.whl#sha256=0", image="python@sha256:0", **inputs).values()
    variables = {name: str(value or "") for name, value in job["variables"].items()}
    path = f"{folder_of_shims()}:{Path(sys.prefix) / 'bin'}:/usr/bin:/bin"
    return bash("\n".join(job["script"]), checkout, {**clean_environment(), **variables, "PATH": path})


RUNS: dict[str, Callable[..., tuple[int, str]]] = {
    "github": partial(run_action, is_preloaded=True),
    "gitlab": run_component,
}


@pytest.mark.parametrize("forge", RUNS)
def test_valid_documents_pass_and_policies_hold(forge: str, checkout: Path) -> None:
    run = RUNS[forge]
    assert run(checkout)[0] == 0
    assert run(checkout, partitions="orders=3", policies="policies.yaml")[0] == 0
    code, text = run(checkout, partitions="orders=4", policies="policies.yaml")
    assert code == 1
    assert "PolicyViolated" in text


@pytest.mark.parametrize("forge", RUNS)
def test_the_first_pull_request_after_an_import_passes(forge: str, checkout: Path) -> None:
    """Imported applications read topics whose counts no setting has."""
    write(checkout, "customer360", "clicks")
    assert RUNS[forge](checkout, partitions="orders=3", policies="policies.yaml")[0] == 0


@pytest.mark.parametrize("forge", RUNS)
def test_documents_on_several_lines_are_all_checked(forge: str, checkout: Path) -> None:
    write(checkout, "wrong", "orders", "  - cuont: {}\n")
    code, text = RUNS[forge](checkout, documents="topologies/shop.yaml\n\n  topologies/wrong.yaml\n")
    assert code == 1
    assert "cuont" in text


def test_github_shows_problems_at_their_lines(checkout: Path) -> None:
    write(checkout, "wrong", "orders", "  - cuont: {}\n")
    code, text = run_action(checkout)
    assert code == 1
    (line,) = (line for line in text.splitlines() if line.startswith("::error"))
    assert line.startswith("::error title=SchemaViolation,file=topologies/wrong.yaml,line=7,col=5::")
    assert "There is no operator `cuont`." in line


def test_gitlab_gets_a_report_also_of_a_failed_check(checkout: Path) -> None:
    write(checkout, "wrong", "orders", "  - cuont: {}\n")
    code, text = run_component(checkout)
    assert code == 1
    assert "error[SchemaViolation]" in text
    (entry,) = json.loads((checkout / "headwater-quality.json").read_text())
    assert entry["location"] == {"path": "topologies/wrong.yaml", "lines": {"begin": 7}}
    assert entry["severity"] == "critical"
    assert len(entry["fingerprint"]) == 64


def test_annotations_escape_what_the_log_would_interpret() -> None:
    at = Location("a,b:c.yaml", 3, 5, "/topology/0")
    problem = Problem(
        code=ProblemCode.YAML_SYNTAX, summary="50%\nbroken", location=at, severity=Severity.WARNING
    )
    assert github_annotations([problem]) == (
        "::warning title=YamlSyntax,file=a%2Cb%3Ac.yaml,line=3,col=5::50%25%0Abroken\n"
    )
    elsewhere = Problem(code=ProblemCode.YAML_SYNTAX, summary="x", found="y", severity=Severity.INFO)
    assert github_annotations([elsewhere]) == "::notice title=YamlSyntax::x Expected: -. Found: y.\n"
    many = github_annotations([elsewhere] * 11 + [problem])
    assert many.endswith(
        "1 warning, 11 hints. GitHub annotates at most 10 of each kind: this log lists all.\n"
    )
    assert "annotates" not in github_annotations([elsewhere] * 10 + [problem] * 10)
    moved = [
        Problem(
            code=ProblemCode.YAML_SYNTAX, summary="x", location=Location("a.yaml", line, 1, "/topology/0")
        )
        for line in (3, 9)
    ]
    (first,), (second,) = (code_quality([each], "a.yaml") for each in moved)
    assert first["fingerprint"] == second["fingerprint"], "the line may change"
    both = code_quality(moved, "a.yaml")
    assert both[0]["fingerprint"] != both[1]["fingerprint"], "GitLab shows one of equal ones"


def test_the_action_installs_only_locked_dependencies(tmp_path: Path) -> None:
    (step,) = (step for step in read(_ACTION)["runs"]["steps"] if step["name"] == "Install")
    environment = {
        **clean_environment(),
        "ACTION": str(_ROOT),
        "PYTHON": sys.executable,
        "RUNNER_TEMP": str(tmp_path),
        "PIP_NO_INDEX": "1",
    }
    code, text = bash(step["run"], tmp_path, environment)
    assert code != 0
    assert "No matching distribution found for attrs==" in text, "the first dependency of the lock"


@pytest.mark.parametrize(
    ("inputs", "is_known"), [({"documents": "topologies"}, True), ({"document": "x"}, False)]
)
def test_actionlint_knows_the_action(inputs: dict[str, str], tmp_path: Path, *, is_known: bool) -> None:
    """actionlint checks a local action of a workflow, and the inputs that the workflow passes."""
    shutil.copy(_ACTION, tmp_path / "action.yml")
    workflow = {
        "on": "pull_request",
        "jobs": {"check": {"runs-on": "ubuntu-24.04", "steps": [{"uses": "./", "with": inputs}]}},
    }
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "check.yml").write_text(yaml.safe_dump(workflow))
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [ensure_actionlint(), "-shellcheck=", "-pyflakes="],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is is_known, done.stdout


def test_the_scripts_of_action_and_component_pass_shellcheck(tmp_path: Path) -> None:
    scripts = [step["run"] for step in read(_ACTION)["runs"]["steps"]]
    (job,) = component(tmp_path, wheel="x", image="python@sha256:0").values()
    scripts += ["\n".join(job[part]) for part in ("before_script", "script")]
    for number, text in enumerate(scripts):
        script = tmp_path / f"{number}.sh"
        script.write_text("#!/bin/bash\nset -eo pipefail\n" + text + "\n")
        done = subprocess.run(
            # Variables of the runner, and options that are split on purpose.
            [Path(sys.prefix) / "bin" / "shellcheck", "-e", "SC2154,SC2086", script],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_the_job_of_the_component_matches_the_schema_of_gitlab(tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    file.write_text(
        yaml.safe_dump(component(tmp_path, wheel="https://x/h.whl#sha256=0", image="python@sha256:0"))
    )
    command = [
        str(Path(sys.prefix) / "bin" / "check-jsonschema"),
        "--builtin-schema",
        "vendor.gitlab-ci",
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hook_of_pre_commit_checks_changed_documents(checkout: Path) -> None:
    """pre-commit passes the changed files that match, and runs the entry in an environment with Headwater."""
    (hook,) = yaml.safe_load((_ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["language"] == "python"
    write(checkout, "wrong", "orders", "  - cuont: {}\n")
    (checkout / "topologies" / ".schema.json").write_text("{}")  # written by `headwater new`
    names = [str(path.relative_to(checkout)) for path in checkout.rglob("*.*")]
    matching = sorted(
        name for name in names if re.search(hook["files"], name) and not re.search(hook["exclude"], name)
    )
    assert matching == ["topologies/shop.yaml", "topologies/wrong.yaml"]
    installed, preloaded = Path(sys.prefix) / "bin", folder_of_shims()
    for folder, files, expected in ((installed, matching, 1), (preloaded, matching[:1], 0)):
        environment = {**clean_environment(), "PATH": f"{folder}{os.pathsep}/usr/bin:/bin"}
        done = subprocess.run(
            [*hook["entry"].split(), *files], cwd=checkout, env=environment, capture_output=True, check=False
        )
        assert done.returncode == expected
