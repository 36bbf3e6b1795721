"""`headwater doctor` recognizes repositories whose pull requests can reach the secrets of production."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from headwater.cli.doctor.pulumi_stack import workflow_texts
from headwater.cli.main import main
from headwater.doctor import Status
from headwater.doctor.permissions import SeparationFacts, separation_findings
from tests.workflows.scripts import GITHUB, GITLAB

OLD_PREVIEW = """
on:
  pull_request:
    paths: [topologies/**]
env:
  HEADWATER: headwater==0.1.0 # the package for pip
jobs:
  preview:
    environment: preview
    steps:
      - run: |
          .venv/bin/pip install "$HEADWATER"
          curl --fail --location https://get.pulumi.com | sh -s -- --version 3.250.0
      - run: pulumi preview --stack "$STACK" --non-interactive --json > preview.json
"""
OLD_UP = """
on:
  push:
    branches: [main]
jobs:
  up:
    steps:
      - run: |
          if ! diff --unified shown.md now.md; then exit 1; fi
          pulumi up --stack "$STACK" --yes
"""
OLD_GITLAB = """
headwater:preview:
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  script:
    - pulumi preview --stack "$STACK" --json > preview.json
headwater:up:
  rules:
    - if: $CI_PIPELINE_SOURCE == "push"
  script:
    - pulumi up --stack "$STACK" --yes
"""


def found(text: str) -> list[str]:
    findings = [*separation_findings(SeparationFacts(workflows={"a.yml": text}))]
    assert all(finding.fix and finding.why for finding in findings if finding.status is not Status.OK)
    return [finding.text.removeprefix("a.yml ") for finding in findings]


def test_workflows_of_earlier_versions_are_recognized() -> None:
    assert found(OLD_PREVIEW) == [
        "runs Pulumi for pull requests.",
        "installs Headwater by its name.",
        "runs a script that it downloads, without a hash.",
    ]
    assert found(OLD_UP) == ["compares the texts of two plans before `pulumi up`."]
    assert found(OLD_GITLAB) == ["runs Pulumi for pull requests."]


@pytest.mark.parametrize("on", ["on: pull_request", "on: [push, pull_request]", "on:\n  - pull_request"])
def test_each_way_to_start_for_pull_requests_is_recognized(on: str) -> None:
    assert found(f"{on}\njobs: {{a: {{steps: [{{run: pulumi preview}}]}}}}\n") == [
        "runs Pulumi for pull requests."
    ]


@pytest.mark.parametrize("file", [*GITHUB, GITLAB], ids=lambda file: file.stem)
def test_workflows_of_this_version_have_no_findings(file: Path) -> None:
    assert found(file.read_text()) == ["no code of a pull request runs where secrets are"]


def test_secrets_in_the_state_are_an_error() -> None:
    (finding,) = separation_findings(SeparationFacts(stored_secrets=("saslPassword",), has_state=True))
    assert finding.status is Status.ERROR
    assert "saslPassword" in finding.text
    assert "change these secrets" in finding.fix
    (fine,) = separation_findings(SeparationFacts(has_state=True))
    assert fine.status is Status.OK
    assert not [*separation_findings(SeparationFacts())]


def test_the_command_reads_the_workflows_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (
        (".github/workflows/headwater-preview.yml", OLD_PREVIEW),
        (".github/workflows/other.yml", OLD_UP),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [*workflow_texts(tmp_path)] == [".github/workflows/headwater-preview.yml"]
    monkeypatch.chdir(tmp_path)
    for name in ("HEADWATER_BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 1
    assert "headwater-preview.yml runs Pulumi for pull requests." in " ".join(result.output.split())
