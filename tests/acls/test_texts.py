"""The complete texts about ACLs in problems and plans."""

from collections.abc import Callable, Iterator
from pathlib import Path

from headwater.compiler import compile_document
from headwater.model.problems import Problem
from headwater.planner.acls import incomplete_needs
from headwater.report import plan_text, problems_text
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
