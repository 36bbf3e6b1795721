"""The complete texts about ACLs in problems, plans and comments on pull requests."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from headwater.compiler import compile_document
from headwater.model.problems import Problem
from headwater.planner.acls import incomplete_needs
from headwater.pulumi.stack_state import ACL_TYPE, COMPONENT_TYPE
from headwater.report import plan_text, problems_text
from headwater.report.plan_comment import plan_comment, read_preview
from headwater.spec import load_text
from tests.acls.test_decide import SOURCE, SimulatedSecuredCluster, declaring

_GOLDEN = Path(__file__).parent / "golden"
_WITH_PATTERN = """
application: {id: alerts}
acls: {principals: ["User:alerts"]}
topology: [{stream: {pattern: ".*-refunds"}}, {to: {extractor: value.topic, name: chosen}}]
"""
_OBSERVED = """
application: {id: legacy}
acls: {principals: ["User:legacy"]}
observed: {topics: {totals-changelog: {kind: changelog, partitions: 4}}, unknown: [sources]}
"""


def problems() -> Iterator[Problem]:
    for text in (_WITH_PATTERN, _OBSERVED):
        compiled = compile_document(load_text(text, "app.yaml").documents[0], {})
        assert compiled.application.acls is not None
        yield from incomplete_needs(compiled, compiled.application.acls)
    yield from SimulatedSecuredCluster(has_authorizer=False).plan(declaring()).problems
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring(steps=2))
    cluster.run_group("orders")
    yield from cluster.plan(declaring()).problems


def test_a_plan_says_which_acls_may_be_missing() -> None:
    compiled = compile_document(load_text(_OBSERVED, "app.yaml").documents[0], {})
    assert compiled.application.acls is not None
    [problem] = incomplete_needs(compiled, compiled.application.acls)
    assert problem in SimulatedSecuredCluster().plan(compiled).problems


def test_texts_of_acl_problems(golden: Callable[[Path, str], None]) -> None:
    golden(_GOLDEN / "problems.txt", problems_text(problems()) + "\n")


def test_text_of_a_plan_with_acls(golden: Callable[[Path, str], None]) -> None:
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring(steps=2))
    cluster.allowed.discard(SOURCE)
    changed = plan_text(cluster.plan(declaring("User:orders", "User:deputy")))
    golden(
        _GOLDEN / "plan.txt",
        f"{plan_text(SimulatedSecuredCluster(allowed={SOURCE}).plan(declaring()))}\n\n{changed}\n",
    )


_COMPONENT = f"urn:pulumi:dev::shop::{COMPONENT_TYPE}"


def headline(ops: Sequence[str]) -> str:
    steps = [
        {"op": op, "urn": f"{_COMPONENT}${ACL_TYPE}::shop/User:shop Read Topic t{number}"}
        for number, op in enumerate(ops)
    ]
    return plan_comment(read_preview(json.dumps({"steps": steps}))).splitlines()[1]


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (["same", "same"], "⚪ Kafka topics: no changes"),
        (["create", "import", "same"], "🟢 Kafka topics: 2 ACLs to grant"),
        (["create", "delete", "delete"], "🟢 Kafka topics: 1 ACL to grant, 2 ACLs to revoke"),
    ],
)
def test_the_headline_counts_grants_and_revocations(ops: Sequence[str], expected: str) -> None:
    assert headline(ops) == f"### {expected}"
