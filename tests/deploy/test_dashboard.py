"""The Grafana dashboard: of Grafana's model, over metrics that exist, in PromQL that parses."""

import json
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.deploy.conftest import DEPLOY, metrics_of

_DASHBOARD = json.loads((DEPLOY / "grafana" / "headwater-agent.json").read_text(encoding="utf-8"))
_PANELS = [panel for panel in _DASHBOARD["panels"] if panel["type"] != "row"]


def _expressions() -> list[str]:
    asked = [target["expr"] for panel in _PANELS for target in panel["targets"]]
    return asked + [annotation["expr"] for annotation in _DASHBOARD["annotations"]["list"]]


def test_grafana_s_model_knows_every_key_and_value() -> None:
    """Grafana's own SDK reads it and writes the same again: a key that it does not know would be lost."""
    register_default_plugins()
    read = Dashboard.from_json(_DASHBOARD)
    assert _missing(_DASHBOARD, json.loads(JSONEncoder().encode(read))) == []


def test_panels_ask_for_metrics_that_an_agent_exports(exported: frozenset[str]) -> None:
    variables = {"label_values"}
    [query] = [each["query"] for each in _DASHBOARD["templating"]["list"] if each["type"] == "query"]
    names = set().union(*map(metrics_of, _expressions()))
    assert len(names) > 10
    assert names <= exported
    assert metrics_of(query.replace(", application_id", "")) - variables <= exported


def test_every_metric_of_our_own_is_shown(exported: frozenset[str]) -> None:
    shown = set().union(*map(metrics_of, _expressions()))
    own = {name for name in exported if not name.startswith(("process_", "python_"))}
    assert {name for name in own - shown if not name.endswith(("_sum", "_count"))} == set()


@pytest.mark.slow
@pytest.mark.timeout(1_200)  # where promtool is built first
def test_queries_are_promql(promtool: Path, tmp_path: Path) -> None:
    interval = {"$__rate_interval": "5m", "$__interval": "1m", "$__range": "1h", "$application": ".*"}
    rules = []
    for number, expression in enumerate(_expressions()):
        for variable, value in interval.items():
            expression = expression.replace(variable, value)  # noqa: PLW2901
        rules.append({"record": f"panel:{number}", "expr": expression})
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_are_told_apart_explained_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in _DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    assert all(panel["description"] and panel["title"] for panel in _PANELS)
    for one, other in combinations((panel["gridPos"] for panel in _DASHBOARD["panels"]), 2):
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in _PANELS)


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
