"""Policies on the command line and in the comment on a pull request."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.cli.console import ExitCode
from headwater.report import plan_text, problem_text
from headwater.report.plan_comment import plan_comment, read_preview
from headwater.toolchain.broker.local import LocalBroker
from tests.cli.conftest import Headwater
from tests.contract.real_cluster import RealCluster
from tests.planner.simulated_cluster import SimulatedCluster, application, limits

DOCUMENT = """\
application: {id: orders}
topics: {totals: {partitions: follow}}
topology:
  - stream: {topic: in}
  - groupBy: {name: by-customer}
  - count: {materialized: {store: Counts, logging: {segment.bytes: 1048576}}}
  - toStream:
  - to: {topic: totals}
"""


@pytest.fixture
def policies(headwater: Headwater, tmp_path: Path) -> Path:
    """Write `orders.yaml` to the working folder; return the path of a policy file to write there."""
    del headwater  # it sets the working folder
    (tmp_path / "orders.yaml").write_text(DOCUMENT)
    return tmp_path / "headwater-policies.yaml"


def test_validate_fails_on_a_violated_policy(headwater: Headwater, policies: Path) -> None:
    policies.write_text('policies: [{storeName: {pattern: "[a-z]+"}}, {topicPartitions: {max: 1}}]')
    done = headwater("validate", ".", "--policies", policies)
    assert done.returncode == ExitCode.PROBLEMS
    assert "error[PolicyViolated] Store name Counts does not match the pattern." in done.stderr
    assert "headwater-policies.yaml:1" in done.stderr
    assert done.stderr.count("PolicyViolated") == 1  # counts are not known here
    assert headwater("validate", ".").returncode == ExitCode.DONE


def test_policy_warning_is_printed_without_failure(headwater: Headwater, policies: Path) -> None:
    policies.write_text('policies: [{storeName: {pattern: "[a-z]+", severity: warning}}]')
    done = headwater("validate", "orders.yaml", "--policies", policies)
    assert (done.returncode, "warning[PolicyViolated]" in done.stderr) == (ExitCode.DONE, True)


def test_compile_checks_policies_on_known_counts(headwater: Headwater, policies: Path) -> None:
    policies.write_text("policies: [{topicPartitions: {max: 4}}, {applicationPartitions: {max: 12}}]")
    fitting = headwater("compile", "orders.yaml", "--partitions", "in=4", "--policies", policies)
    assert (fitting.returncode, fitting.stderr) == (ExitCode.DONE, "")
    done = headwater(
        "compile", "orders.yaml", "--partitions", "in=5", "--policies", policies, "--format", "json"
    )
    assert done.returncode == ExitCode.PROBLEMS
    (reported,) = json.loads(done.stdout)["applications"]
    assert [problem["code"] for problem in reported["problems"]] == ["PolicyViolated"] * 4
    assert {problem["topic"] for problem in reported["problems"]} == {
        "orders-by-customer-repartition",
        "orders-Counts-changelog",
        "totals",
        None,
    }


def test_policies_are_read_from_several_files(headwater: Headwater, policies: Path) -> None:
    policies.write_text('policies: [{storeName: {pattern: "[a-z]+"}}]')
    other = policies.with_name("more.txt")
    other.write_text('policies: [{applicationId: {pattern: "shop-.*"}}]')
    done = headwater("validate", "orders.yaml", "--policies", policies, "--policies", other)
    assert done.stderr.count("error[PolicyViolated]") == 2


def test_invalid_policies_stop_all_commands(headwater: Headwater, policies: Path) -> None:
    policies.write_text("policies: [{storeNames: {pattern: x}}]")
    for command in ("validate", "compile"):
        done = headwater(command, "orders.yaml", "--policies", policies)
        assert (done.returncode, done.stdout) == (ExitCode.PROBLEMS, "")
        assert "Did you mean `storeName`?" in done.stderr
    done = headwater("plan", "orders.yaml", "--policies", policies, "--bootstrap-server", "127.0.0.1:1")
    assert "Did you mean `storeName`?" in done.stderr
    assert headwater("validate", "orders.yaml", "--policies", "nowhere").returncode == ExitCode.USAGE


def test_pull_request_comment_shows_policy_violations() -> None:
    plan = SimulatedCluster().plan(application(), policy=limits(createdTopics=1))
    preview = {
        "diagnostics": [{"severity": "error", "message": problem_text(problem)} for problem in plan.problems]
        + [{"severity": "info", "message": plan_text(plan)}]
    }
    comment = plan_comment(read_preview(json.dumps(preview)))
    assert "🔴 Kafka topics: refused, 1 error; nothing will be changed" in comment
    assert "error[BlastRadius] This run would result in 2 new topics" in comment
    assert "policies.yaml:3" in comment


@pytest.mark.broker
def test_plan_checks_policies_on_broker_defaults(
    headwater: Headwater, policies: Path, kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    id_, source = unique("app"), unique("in")
    RealCluster(kafka.bootstrap_servers).create(source, 3)
    document = policies.with_name("orders.yaml")
    document.write_text(DOCUMENT.replace("orders", id_).replace("topic: in", f"topic: {source}"))
    policies.write_text(
        "policies: [{replicationFactor: {min: 2, kinds: [changelog]}}, {blastRadius: {createdTopics: 2}}]"
    )
    arguments = ("plan", document, "--bootstrap-server", kafka.bootstrap_servers)
    done = headwater(*arguments, "--policies", policies)
    assert done.returncode == ExitCode.REFUSED
    assert "error[BlastRadius] This run would result in 3 new topics" in done.stderr
    assert f"error[PolicyViolated] Internal topic {id_}-Counts-changelog has 1 replica" in done.stderr
    assert "nothing is changed" in done.stdout
    assert headwater(*arguments).returncode == ExitCode.DONE
