"""The permissions that Headwater itself needs for applications whose source topics a pattern names."""

import pytest

from headwater.compiler import compile_document
from headwater.model.acls import Operation, Pattern, ResourceKind
from headwater.planner.acls import Purpose, headwater_needs
from headwater.spec import load_text

_DOCUMENT = """
application: {{id: shop}}
topology: [{{stream: {{pattern: "{pattern}"}}}}, {{to: out}}]
"""


@pytest.mark.parametrize(
    ("pattern", "described"),
    [
        ("orders-(eu|us)", {("orders-eu", Pattern.LITERAL), ("orders-us", Pattern.LITERAL)}),
        ("orders-.*", {("orders-", Pattern.PREFIXED)}),
        (".*-orders", {("*", Pattern.LITERAL)}),
    ],
)
def test_a_pattern_without_a_fixed_prefix_needs_describe_on_all_topics(
    pattern: str, described: set[tuple[str, Pattern]]
) -> None:
    compiled = compile_document(load_text(_DOCUMENT.format(pattern=pattern), "shop.yaml").documents[0], {})
    found = {
        (need.permission.name, need.permission.pattern)
        for need in headwater_needs(Purpose.PLAN, [compiled])
        if need.permission.kind is ResourceKind.TOPIC and need.permission.operation is Operation.DESCRIBE
    }
    assert described <= found
    assert ("*" in {name for name, _ in found}) == ("*" in {name for name, _ in described})
