"""The alert rules: sound, tried by promtool, over metrics that exist, each with its part of the runbook."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.conftest import DEPLOY, ROOT, metrics_of
from toolchain.promtool import PROMETHEUS_VERSION

_RULES = DEPLOY / "prometheus" / "headwater-alerts.yaml"
_TESTS = Path(__file__).with_name("headwater-alerts.test.yaml")


def _rules() -> list[dict[str, Any]]:
    return [rule for group in _read(_RULES)["groups"] for rule in group["rules"]]


def _read(file: Path) -> Any:  # noqa: ANN401 - YAML
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.timeout(1_200)  # where promtool is built first
def test_promtool_takes_the_rules_and_their_tests_pass(promtool: Path) -> None:
    check, test = (
        ("check", "rules", "--lint=all", "--lint-fatal", str(_RULES)),
        ("test", "rules", str(_TESTS)),
    )
    for command in (check, test):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tried_firing_and_silent() -> None:
    tried: dict[str, list[bool]] = {}
    for test in _read(_TESTS)["tests"]:
        for case in test["alert_rule_test"]:
            tried.setdefault(case["alertname"], []).append(bool(case["exp_alerts"]))
    assert set(tried) == {rule["alert"] for rule in _rules()}
    assert all(set(fires) == {True, False} for fires in tried.values()), tried


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: rule["alert"])
def test_an_alert_reads_metrics_that_a_program_exports(
    rule: dict[str, Any], exported: frozenset[str], exported_by_runtime: frozenset[str]
) -> None:
    names = metrics_of(rule["expr"])
    assert names
    assert names <= exported or names <= exported_by_runtime


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: rule["alert"])
def test_an_alert_leads_to_its_part_of_the_runbook(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor == rule["alert"].lower()
    assert rule["alert"] in headings
    assert rule["labels"]["severity"] in ("critical", "warning")


def test_the_operator_gets_the_same_rules() -> None:
    resource = _read(DEPLOY / "kubernetes" / "prometheus-operator" / "prometheus-rule.yaml")
    assert resource["spec"] == _read(_RULES)


def test_promtool_is_the_pinned_one() -> None:
    major, minor, patch = PROMETHEUS_VERSION.split(".")
    wanted = f"github.com/prometheus/prometheus v0.{int(major) * 100 + int(minor)}.{patch}\n"
    assert wanted in (ROOT / "toolchain" / "go" / "promtool" / "go.mod").read_text(encoding="utf-8")
