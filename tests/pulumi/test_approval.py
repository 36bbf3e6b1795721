"""`pulumi up` makes the plan that was approved, or none: the digest is over all values of the plan."""

import json
from pathlib import Path

import pytest

from headwater.cli.console import ExitCode
from tests.cli.conftest import Headwater, headwater
from tests.pulumi.conftest import Deployment
from tests.pulumi.driver import STACK

pytestmark = [pytest.mark.pulumi, pytest.mark.broker, pytest.mark.slow]
__all__ = ["headwater"]  # fixture

_CREATED = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
"""The settings of a changelog topic that Kafka Streams has created."""
STORES = 40
"""Each has a repartition and a changelog topic: more lines than the log of a run shows."""


def _planned(headwater: Headwater, deployment: Deployment, file: str = "plan.json") -> Path:
    """Write the plan of the stack from a copy of its records, as a pipeline does before the approval."""
    folder = deployment.stack.folder
    records = folder / "records.json"
    is_new = not deployment.stack.state()
    records.write_text('{"deployment": null}' if is_new else deployment.stack.succeed("stack", "export"))
    planned = headwater(
        *("plan", folder / "documents", "--bootstrap-server", deployment.cluster.bootstrap_servers),
        *("--stack", STACK, "--project", folder, "--stack-state", records),
        *("--format", "json", "--output", folder / file),
    )
    assert planned.returncode == ExitCode.DONE, planned.stderr
    return folder / file


def _counting(deployment: Deployment) -> None:
    """Write a document that counts in many ways."""
    steps: list[dict[str, object]] = [{"stream": {"topic": deployment.source, "as": "orders"}}]
    for number in range(STORES):
        steps += [
            {"groupBy": {"from": "orders", "key": "value.customer", "name": f"by-customer-{number:02}"}},
            {"count": {"materialized": f"counts-{number:02}"}},
        ]
    deployment.write(steps)


def test_only_the_approved_plan_is_made(headwater: Headwater, deployment: Deployment) -> None:
    deployment.declare()
    plan = _planned(headwater, deployment)
    digest = json.loads(plan.read_text())["digest"]
    deployment.cluster.expand(deployment.source, 6)
    for approved in ("plan.json", digest, ""):  # `advice/test_runs` has more values
        deployment.with_environment(HEADWATER_APPROVED_PLAN=approved).refused("PlanNotApproved")
    assert deployment.partitions() == (None, None)
    digest = json.loads(_planned(headwater, deployment).read_text())["digest"]
    deployment.with_environment(HEADWATER_APPROVED_PLAN=digest).up()
    deployment.settles_at(6, 6)
    deployment.cluster.delete(deployment.source)


def test_the_id_of_a_topic_is_part_of_what_was_approved(headwater: Headwater, deployment: Deployment) -> None:
    """A topic that was created again with the same settings is another topic."""
    deployment.declare({"internal.topics.setup": "automatic"})
    deployment.cluster.create(
        deployment.changelog, 4, {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    )
    plan = _planned(headwater, deployment)
    deployment.cluster.delete(deployment.changelog)
    deployment.cluster.create(
        deployment.changelog, 4, {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    )
    production = deployment.with_environment(HEADWATER_APPROVED_PLAN=str(plan))
    refused = production.refused("PlanNotApproved")
    assert f"Different: {deployment.changelog}" in " ".join(refused.text.split())


def test_a_source_that_grows_after_the_approval_is_noticed_in_a_long_plan(
    headwater: Headwater, deployment: Deployment
) -> None:
    """The texts of both plans have the same first 60 lines; 64 partitions each would be created."""
    _counting(deployment)
    plan = _planned(headwater, deployment)
    assert len(json.loads(plan.read_text())["plan"]["applications"][deployment.id]["topics"]) == 2 * STORES
    deployment.cluster.expand(deployment.source, 64)
    production = deployment.with_environment(HEADWATER_APPROVED_PLAN="plan.json")
    outcome = production.stack.up()
    assert not outcome.succeeded
    assert "error[PlanNotApproved]" in outcome.text
    assert not [name for name in deployment.cluster.names() if name.startswith(f"{deployment.id}-")]
