"""Fixes of a run as a whole are followed: the plan that was approved, and what brokers do not show."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import attrs
import click
import pytest

from headwater.cli.plan import plan
from headwater.model.problems import Problem, ProblemCode
from headwater.operations.observation import Observation
from headwater.operations.planning import plan_documents
from headwater.planner import PlanPolicy
from headwater.pulumi.planning import approval_problem
from headwater.report.plan_json import plan_json
from tests.advice.forms import OBSERVED
from tests.advice.trial import Trial
from tests.advice.trials import COUNT, begin

STACK = "acme/shop production"


def _write_plan(trial: Trial, file: Path) -> str:
    """Write the plan as `headwater plan --format json --output` does, and return its digest."""
    file.write_text(json.dumps(plan_json(trial.plan(), STACK)))
    return str(json.loads(file.read_text())["digest"])


def _refused(trial: Trial, approved: str | Path) -> Problem:
    problem = approval_problem(trial.plan(), str(approved), STACK)
    assert problem is not None
    assert problem.code is ProblemCode.PLAN_NOT_APPROVED
    return problem


def test_a_plan_that_has_changed_is_planned_and_approved_again(tmp_path: Path) -> None:
    trial, file = begin(), tmp_path / "plan.json"
    _write_plan(trial, file)
    trial.cluster.change("orders-in", partitions=8)
    assert "Plan again with all documents of the stack (`headwater plan" in _refused(trial, file).fix
    digest = _write_plan(trial, file)
    assert approval_problem(trial.plan(), str(file), STACK) is None
    assert approval_problem(trial.plan(), digest, STACK) is None


@pytest.mark.parametrize("approved", ["", "missing.json", "text.txt"])
def test_an_approved_plan_that_cannot_be_read_is_named(
    approved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("{")
    trial = begin()
    problem = _refused(trial, approved)
    assert problem.found == (f"{approved}, in the folder {tmp_path}" if approved else "nothing")
    assert "Set HEADWATER_APPROVED_PLAN to the path of the file" in problem.fix
    digest = _write_plan(trial, tmp_path / "plan.json")
    assert approval_problem(trial.plan(), "plan.json", STACK) is None
    assert approval_problem(trial.plan(), digest, STACK) is None


def test_the_command_of_a_plan_names_the_stack_and_has_options_that_exist() -> None:
    problem = _refused(begin(), "sha256:" + "0" * 64)
    _, command, *_ = problem.fix.split("`")
    options, _, _ = plan.make_parser(click.Context(plan)).parse_args(shlex.split(command)[2:])
    assert (options["stack"], options["form"], options["output"]) == (STACK, "json", "plan.json")


SINK = COUNT.replace("topics: {}", "topics: {orders-out: {partitions: 4}}")


def _set_factor(trial: Trial) -> None:
    trial.configure(replication_factor="3")


def _set_sink_factor(trial: Trial) -> None:
    trial.documents["orders"]["topics"]["orders-out"]["replicationFactor"] = 3


def _set_both(trial: Trial) -> None:
    _set_factor(trial)
    _set_sink_factor(trial)


def _set_observed_factors(trial: Trial) -> None:
    for topic in trial.documents["orders"]["observed"]["topics"].values():
        topic["replicationFactor"] = 3


def _unknown_factor(trial: Trial) -> list[Problem]:
    documents, compiled = trial.compile()
    snapshot = attrs.evolve(trial.snapshot, default_replication_factor=None)
    observed = Observation(documents, compiled, snapshot, {})
    problems = plan_documents(observed, PlanPolicy(), 0).problems
    return [problem for problem in problems if "default replication factor" in problem.summary]


@pytest.mark.parametrize(
    ("text", "says", "follow"),
    [
        (COUNT, "Set `replication.factor` in the application's config, or grant", _set_factor),
        (
            SINK,
            "in the application's config and `replicationFactor` of orders-out below `topics`, or grant",
            _set_both,
        ),
        (
            OBSERVED,
            "`replicationFactor` of orders-by-k-repartition, orders-counts-changelog below `observed.topics`",
            _set_observed_factors,
        ),
    ],
)
def test_a_replication_factor_is_declared_where_the_topic_is(
    text: str, says: str, follow: Callable[[Trial], object]
) -> None:
    trial = Trial()
    trial.declare(text)
    trial.cluster.create("orders-in", 4)
    (problem,) = _unknown_factor(trial)
    assert says in problem.fix
    follow(trial)
    assert _unknown_factor(trial) == []
