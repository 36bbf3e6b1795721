"""What an import does not show: which details are listed as unknown, and how they are reported."""

import pytest

from headwater.compiler.described import find_unknown
from headwater.compiler.described.unknown import known_calls, unknown_problems
from headwater.model.problems import ProblemCode, Severity
from headwater.model.topology import Application, CreatedBy, StoreDetail, UnknownDetails
from headwater.model.versions import DEFAULT_VERSION
from tests.compiler.imported_texts import AGGREGATION, AT, imported

REPARTITION = """
topology:
  - stream: {topic: in}
  - selectKey:
  - repartition: {name: wide}
  - to: {topic: out}
"""
FORWARD = "topology: [{stream: {topic: in}}, {to: {topic: out}}]"
COGROUP = """
topology:
  - stream: {topic: in}
  - groupBy: {name: by}
  - cogroup: {}
  - aggregate: {materialized: sums}
"""


def unknown(text: str, **config: str) -> UnknownDetails:
    return find_unknown(imported(text), Application("app", AT, config=config), {})


def test_a_text_without_internal_topics_leaves_nothing_open() -> None:
    assert not unknown(FORWARD)


def test_an_explicit_count_may_be_missing_where_repartition_was_called() -> None:
    assert unknown(REPARTITION).repartitions == ("wide-repartition",)
    given = imported(REPARTITION, repartition_partitions={"wide-repartition": 6})
    assert find_unknown(given, Application("app", AT), {}).repartitions == ()


def test_protocol_and_config_are_unknown_until_they_are_given() -> None:
    assert unknown(REPARTITION).application == ("protocol", "config")
    assert unknown(REPARTITION, **{"num.stream.threads": "2"}).application == ("protocol",)
    assert unknown(REPARTITION, **{"group.protocol": "classic"}).application == ()


def test_known_details_of_a_store_are_not_listed() -> None:
    described = imported(AGGREGATION)
    application = Application("app", AT)
    (listed,) = find_unknown(described, application, {}).stores.values()
    assert "logging" in listed
    assert "logging" not in find_unknown(described, application, {"counts": ["logging"]}).stores["counts"]


def test_a_cogroup_does_not_show_which_call_made_its_topic() -> None:
    assert unknown(COGROUP).created_by == ("by-repartition",)
    described = imported(COGROUP, created_by={"by-repartition": CreatedBy.GROUPING})
    assert find_unknown(described, Application("app", AT), {}).created_by == ()


def test_only_repartition_takes_an_explicit_count() -> None:
    described = imported(
        AGGREGATION,
        repartition_partitions={"wide-repartition": 6},
        created_by={"by-repartition": CreatedBy.GROUPING},
    )
    assert known_calls(described) == {
        "wide-repartition": CreatedBy.REPARTITION,
        "by-repartition": CreatedBy.GROUPING,
    }


@pytest.mark.parametrize(
    ("details", "asked", "summaries"),
    [
        (UnknownDetails(), {}, []),
        (
            UnknownDetails(repartitions=("a", "b")),
            {},
            ["Whether these repartition topics have an explicit partition count is not known: a, b."],
        ),
        (UnknownDetails(repartitions=("known",)), {}, []),
        (
            UnknownDetails(stores={"s": ("kind", "logging"), "t": ("kind", "logging"), "u": ("logging",)}),
            {},
            ["Not known of stores: kind, logging of s and t; logging of u."],
        ),
        (UnknownDetails(stores={"s": ("kind",)}), {"s": ["kind"]}, []),
        (UnknownDetails(stores={"windows": ("kind", "retention")}), {}, []),
    ],
    ids=["nothing", "counts", "given count", "stores", "reported as error", "answered by the entry"],
)
def test_each_sort_of_detail_is_one_warning(
    details: UnknownDetails, asked: dict[str, list[str]], summaries: list[str]
) -> None:
    described = imported(
        FORWARD,
        unknown=details,
        repartition_partitions={"known": 3},
        stores={"windows": StoreDetail("window", 3_600_000)},
    )
    found = list(unknown_problems(described, asked, DEFAULT_VERSION))
    assert [problem.summary for problem in found] == summaries
    assert {problem.code for problem in found} <= {ProblemCode.MISSING_DETAIL}
    assert {problem.severity for problem in found} <= {Severity.WARNING}


def test_many_names_are_shortened() -> None:
    described = imported(FORWARD, unknown=UnknownDetails(repartitions=tuple(f"r{n}" for n in range(2_000))))
    (problem,) = unknown_problems(described, {}, DEFAULT_VERSION)
    assert "more." in problem.summary
    assert len(problem.summary) < 500
