"""Tests of the Grafana dashboards: valid in Grafana's model, on exported metrics, with valid PromQL."""

import json
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.deploy.conftest import DEPLOY, metrics_of

_EXPORTERS = {"headwater-agent": "exported", "headwater-runtime": "exported_by_runtime"}


@attrs.frozen
class _Dashboard:
    """A dashboard; `exported` are the names of the series that its program exports."""

    json: dict[str, Any]
    exported: frozenset[str]

    @property
    def panels(self) -> list[dict[str, Any]]:
        return [panel for panel in self.json["panels"] if panel["type"] != "row"]

    @property
    def expressions(self) -> list[str]:
        queried = [target["expr"] for panel in self.panels for target in panel["targets"]]
        return queried + [annotation["expr"] for annotation in self.json["annotations"]["list"]]

    @property
    def shown(self) -> frozenset[str]:
        return frozenset().union(*map(metrics_of, self.expressions))


@pytest.fixture(params=_EXPORTERS)
def dashboard(request: pytest.FixtureRequest) -> _Dashboard:
    text = (DEPLOY / "grafana" / f"{request.param}.json").read_text(encoding="utf-8")
    return _Dashboard(json.loads(text), request.getfixturevalue(_EXPORTERS[request.param]))


def test_every_dashboard_is_tested() -> None:
    assert {file.stem for file in (DEPLOY / "grafana").iterdir()} == set(_EXPORTERS)


def test_grafana_knows_every_key_and_value(dashboard: _Dashboard) -> None:
    """Grafana's SDK reads and writes it without a change. Unknown keys would be lost."""
    register_default_plugins()
    read = Dashboard.from_json(dashboard.json)
    assert _missing(dashboard.json, json.loads(JSONEncoder().encode(read))) == []


def test_panels_use_exported_metrics(dashboard: _Dashboard) -> None:
    variables = {"label_values"}
    queries = [each["query"] for each in dashboard.json["templating"]["list"] if each["type"] == "query"]
    assert len(dashboard.shown) >= 9
    assert dashboard.shown <= dashboard.exported
    for query in queries:
        selector = query.replace(", application_id", "").replace(", cluster)", ")")
        assert metrics_of(selector) - variables <= dashboard.exported


def test_all_panels_are_of_the_chosen_clusters(dashboard: _Dashboard) -> None:
    for expression in dashboard.expressions:
        assert expression.count('cluster=~"$cluster"') == len(metrics_of(expression)), expression


def test_every_metric_of_headwater_has_a_panel(dashboard: _Dashboard) -> None:
    elsewhere = ("process_", "python_")
    own = {name for name in dashboard.exported if not name.startswith(elsewhere)}
    assert {name for name in own - dashboard.shown if not name.endswith(("_sum", "_count"))} == set()


@pytest.mark.slow
@pytest.mark.timeout(1_200)  # promtool may have to be built first
def test_queries_are_promql(dashboard: _Dashboard, promtool: Path, tmp_path: Path) -> None:
    interval = {
        "$__rate_interval": "5m",
        "$__interval": "1m",
        "$__range": "1h",
        "$application": ".*",
        "$cluster": ".*",
    }
    rules = []
    for number, expression in enumerate(dashboard.expressions):
        for variable, value in interval.items():
            expression = expression.replace(variable, value)  # noqa: PLW2901
        rules.append({"record": f"panel:{number}", "expr": expression})
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_have_ids_and_descriptions_and_do_not_overlap(dashboard: _Dashboard) -> None:
    ids = [panel["id"] for panel in dashboard.json["panels"]]
    assert len(set(ids)) == len(ids)
    assert all(panel["description"] and panel["title"] for panel in dashboard.panels)
    for one, other in combinations((panel["gridPos"] for panel in dashboard.json["panels"]), 2):
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in dashboard.panels)


def _missing(given: Any, known: Any, at: str = "") -> list[str]:  # noqa: ANN401 - JSON
    match given, known:
        case dict(), dict():
            found = [
                _missing(value, known.get(key, "nothing"), f"{at}/{key}") for key, value in given.items()
            ]
            return [each for some in found for each in some]
        case list(), list() if len(given) == len(known):
            pairs = enumerate(zip(given, known, strict=True))
            return [each for number, (a, b) in pairs for each in _missing(a, b, f"{at}/{number}")]
    return [] if given == known else [at]
