"""ACLs in the comment on a pull request."""

import json
from collections.abc import Sequence

import pytest

from headwater.pulumi.stack_state import ACL_TYPE, COMPONENT_TYPE
from headwater.report.plan_comment import plan_comment, read_preview

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
