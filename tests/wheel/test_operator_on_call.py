"""An operator on call: an internal topic is lost, and the pages lead from the alert to the repair."""

import signal
from pathlib import Path

import pytest
import yaml

from headwater.toolchain.broker.readiness import until
from tests.wheel.walk import Walk, blocks, command

pytestmark = [pytest.mark.pulumi, pytest.mark.broker, pytest.mark.soak]

_SECONDS = 120


@pytest.mark.timeout(1_200)
def test_a_lost_topic_is_found_explained_and_set_up_again(walk: Walk) -> None:
    walk.run("headwater new .")
    stack = walk.folder / "Pulumi.local.yaml"
    stack.write_text(walk.as_typed(stack.read_text()))
    walk.run('headwater toolchain\neval "$(headwater toolchain env)"')
    set_up, *_ = blocks(walk.folder / "README.md", "Try it on this machine")
    walk.run(set_up.commands)
    [lost] = [
        topic
        for topic in walk.run("headwater local kafka topics --list").splitlines()
        if topic.startswith("order-counts-") and topic.endswith("-changelog")
    ]

    walk.replaced = {
        **walk.replaced,
        "headwater agent status": f"headwater agent status {walk.as_typed('127.0.0.1:9878')}",
        "orders-app": "order-counts",
        "--stack production": "--stack local",
        "--command-config client.properties": walk.as_typed("--bootstrap-server localhost:9092"),
    }
    agent, status, history = blocks("agent.md", "Quick start")[0].commands.splitlines()
    with walk.running(agent) as process:
        assert until(lambda: "steady" in walk.attempt(status), _SECONDS)
        walk.run(f"headwater local kafka topics --delete --topic {lost}")
        process.send_signal(signal.SIGHUP)  # otherwise the next check is up to five minutes later
        assert until(lambda: "incomplete" in walk.attempt(status), _SECONDS)
        assert lost in walk.run(status)

        walk.run("headwater dashboards -o monitoring")
        [rules] = (walk.folder / "monitoring").rglob("*alerts.yaml")
        alerts = [rule for group in yaml.safe_load(rules.read_text())["groups"] for rule in group["rules"]]
        [alert] = [rule for rule in alerts if rule["alert"] == "HeadwaterInternalTopicMissing"]
        page, _, anchor = alert["annotations"]["runbook"].partition("#")
        assert f"### {alert['alert']}" in (Path(__file__).parents[2] / page).read_text()
        assert anchor == alert["alert"].lower()

        drift = walk.run(command("drift.md", "headwater drift topologies/ --bootstrap-server"), expected=2)
        assert "missing" in drift
        assert lost in drift
        assert "Why it matters" in walk.run("headwater explain MissingInternalTopics")
        plan = walk.run("headwater plan topologies/ --stack local", expected=3)
        assert f"Internal topic {lost} was set up and no longer exists." in " ".join(plan.split())

        assert "[BlastRadius]" in plan
        policies = walk.folder / "headwater-policies.yaml"
        before = policies.read_text()
        policies.write_text(before.replace("recreatedTopics: 0", "recreatedTopics: 1"))
        walk.run(blocks("problems.md", "Problems and how to fix them")[0].commands)
        policies.write_text(before)
        assert "No drift" in walk.run(
            command("drift.md", "headwater drift topologies/ --command-config client.properties --stack")
        )
        process.send_signal(signal.SIGHUP)
        assert until(lambda: "steady" in walk.attempt(status), _SECONDS)
        walk.run(history)
    *_, of_the_stack = blocks("own-repository.md", "Check that everything is ready")[0].commands.splitlines()
    walk.run(of_the_stack)
    walk.run(blocks(walk.folder / "README.md", "Try it on this machine")[-1].commands)
