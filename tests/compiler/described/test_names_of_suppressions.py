"""Imported texts with names that suppressions and foreign-key joins have, and other operators can have."""

import pytest

from headwater.model.problems import Severity
from headwater.model.topology import StoreDetail
from tests.compiler.applications import compiled, counts
from tests.compiler.imported_texts import compile_described, imported, missing_details

LIKE_A_SUPPRESSION = {
    "count below a repartition topic": """
topology:
  - stream: {topic: in}
  - groupBy: {name: by}
  - windowedBy: {tumbling: {size: 1h}}
  - count: {name: hourly, materialized: hourly-store}
""",
    "count below a source": """
topology:
  - stream: {topic: in}
  - groupByKey:
  - count: {name: hourly, materialized: hourly-store}
""",
    "count below a named operator": """
topology:
  - stream: {topic: in}
  - filter: {where: x, name: valid}
  - groupByKey:
  - count: {name: hourly, materialized: hourly-store}
""",
    "count named like the result of a foreign-key join": """
topology:
  - stream: {topic: in}
  - groupByKey:
  - count: {name: hourly-result, materialized: hourly-store}
""",
    "count with the name of a subscription store": """
topology:
  - stream: {topic: in}
  - groupByKey:
  - count: {materialized: hourly-subscription-store}
""",
}


@pytest.mark.parametrize("text", LIKE_A_SUPPRESSION.values(), ids=LIKE_A_SUPPRESSION.keys())
def test_the_kind_of_a_store_with_the_name_of_another_operators_is_missing(text: str) -> None:
    """It may be windowed: with a key-value store's config, its changelog would grow without limit."""
    [problem] = missing_details(imported(text))
    assert problem.summary.startswith("The description does not show the kind of store hourly-")


JOIN_WITH_NAMED_TABLE = """
topology:
  - stream: {topic: a}
  - selectKey: {key: x, as: a}
  - table: {topic: t, materialized: t-store, name: t, as: t}
  - join: {from: a, with: t, name: at}
"""


def test_a_source_table_whose_store_is_named_after_it_is_copartitioned() -> None:
    partitions = {"a": 5, "t": 3}
    application = compile_described(imported(JOIN_WITH_NAMED_TABLE), partitions)
    assert counts(application) == counts(compiled(JOIN_WITH_NAMED_TABLE, partitions))
    assert application.problems == ()


def test_a_table_of_a_stream_whose_store_is_named_after_it_is_no_suppression() -> None:
    text = JOIN_WITH_NAMED_TABLE.replace("table: {topic: t,", "stream: {topic: t}\n  - toTable: {")
    described = imported(text, stores={"t-store": StoreDetail()})
    [problem] = missing_details(described)
    assert problem.summary.startswith("The processors at, t share the store t-store;")
    assert problem.expected == "a group in `copartitioned`, if their keys are joined: [at-repartition, t]"


SUPPRESSED_OR_FILTERED = """
topology:
  - stream: {topic: a}
  - selectKey: {key: x, as: a}
  - table: {topic: t, materialized: ts}
  - {filter: {where: x, name: active, materialized: active-store, as: active}}
  - join: {from: a, with: active}
"""


def test_an_operator_of_a_table_that_is_printed_like_a_suppression_is_a_warning() -> None:
    described = imported(SUPPRESSED_OR_FILTERED)
    [problem] = missing_details(described)
    assert problem.severity is Severity.WARNING
    repartition = "KSTREAM-KEY-SELECT-0000000001-repartition"
    assert problem.expected == (
        f"a group in `copartitioned`, if they are other operators: [{repartition}, t]"
    )
    named = imported(SUPPRESSED_OR_FILTERED, copartitioned=((repartition, "t"),))
    application = compile_described(named, {"a": 5, "t": 3})
    assert application.problems == ()
    assert counts(application) == counts(compiled(SUPPRESSED_OR_FILTERED, {"a": 5, "t": 3}))
