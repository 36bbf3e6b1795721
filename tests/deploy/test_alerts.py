"""Tests of the alert rules: valid, tested with promtool, on exported metrics, each with its runbook."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.conftest import DEPLOY, ROOT, metrics_of
from tests.toolchain.programs import GO_MODULES, PROMETHEUS_VERSION

_RULES = DEPLOY / "prometheus" / "headwater-alerts.yaml"
_TESTS = Path(__file__).with_name("headwater-alerts.test.yaml")


def _rules() -> list[dict[str, Any]]:
    return [rule for group in _read(_RULES)["groups"] for rule in group["rules"]]


def _read(file: Path) -> Any:  # noqa: ANN401 - YAML
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.timeout(1_200)  # promtool may have to be built first
def test_promtool_accepts_the_rules_and_their_tests_pass(promtool: Path) -> None:
    check, test = (
        ("check", "rules", "--lint=all", "--lint-fatal", str(_RULES)),
        ("test", "rules", str(_TESTS)),
    )
    for command in (check, test):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_tests_that_fire_and_that_do_not() -> None:
    tested: dict[str, list[bool]] = {}
    for test in _read(_TESTS)["tests"]:
        for case in test["alert_rule_test"]:
            tested.setdefault(case["alertname"], []).append(bool(case["exp_alerts"]))
    assert set(tested) == {rule["alert"] for rule in _rules()}
    assert all(set(fires) == {True, False} for fires in tested.values()), tested


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: rule["alert"])
def test_an_alert_uses_exported_metrics(
    rule: dict[str, Any], exported: frozenset[str], exported_by_runtime: frozenset[str]
) -> None:
    names = metrics_of(rule["expr"])
    assert names
    assert names <= exported or names <= exported_by_runtime


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: rule["alert"])
def test_the_runbook_of_an_alert_exists(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor == rule["alert"].lower()
    assert rule["alert"] in headings
    assert rule["labels"]["severity"] in ("critical", "warning")


def test_the_prometheus_operator_has_the_same_rules() -> None:
    resource = _read(DEPLOY / "kubernetes" / "prometheus-operator" / "prometheus-rule.yaml")
    assert resource["spec"] == _read(_RULES)


def test_promtool_has_the_pinned_version() -> None:
    major, minor, patch = PROMETHEUS_VERSION.split(".")
    expected = f"github.com/prometheus/prometheus v0.{int(major) * 100 + int(minor)}.{patch}\n"
    assert expected in (GO_MODULES / "promtool" / "go.mod").read_text(encoding="utf-8")
