"""What the names of nodes, stores and topics in a described text say about the call that created them."""

import pytest

from headwater.compiler.described import names

PATTERNS = {
    "GENERATED": (
        ("KSTREAM-FILTER-0000000001", "KTABLE-SOURCE-0000000002", "KSTREAM-AGGREGATE-STATE-STORE-0000000003"),
        ("orders", "counts-repartition", "KSTREAM-FILTER-1"),
    ),
    "FOREIGN_KEY_TOPIC": (
        (
            "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000005-topic",
            "rates-subscription-response-topic",
        ),
        ("rates-subscription-store", "KTABLE-FK-JOIN-OUTPUT-0000000005"),
    ),
    "JOIN_STORE": (
        ("KSTREAM-JOINTHIS-0000000004-store", "clicks-this-join-store", "clicks-outer-other-join-store"),
        ("clicks-left-shared-join-store", "KTABLE-JOINTHIS-0000000004-store"),
    ),
    "SHARED_JOIN_STORE": (
        ("KSTREAM-OUTERSHARED-0000000004-store", "clicks-left-shared-join-store"),
        ("clicks-this-join-store",),
    ),
    "WINDOWED_NODE": (
        ("KSTREAM-WINDOWED-0000000003", "clicks-other-windowed"),
        ("KSTREAM-JOINOTHER-0000000005", "windowed"),
    ),
    "COGROUP_NODE": (
        ("COGROUPKSTREAM-AGGREGATE-0000000006", "totals-cogroup-agg-0"),
        ("totals-cogroup-merge", "KSTREAM-AGGREGATE-0000000006"),
    ),
    "CUSTOM_NODE": (
        ("KSTREAM-PROCESSOR-0000000001", "KSTREAM-TRANSFORMVALUES-0000000001"),
        ("KTABLE-TRANSFORMVALUES-0000000001", "my-processor"),
    ),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_the_names_of_its_calls_only(pattern: str) -> None:
    matching, others = PATTERNS[pattern]
    assert [name for name in matching if getattr(names, pattern).fullmatch(name) is None] == []
    assert [name for name in others if getattr(names, pattern).fullmatch(name)] == []


@pytest.mark.parametrize(
    ("child", "windowed", "expected"),
    [
        ("KSTREAM-JOINTHIS-0000000004", "KSTREAM-WINDOWED-0000000003", True),
        ("KSTREAM-MERGE-0000000006", "KSTREAM-WINDOWED-0000000003", True),
        ("KSTREAM-FILTER-0000000004", "KSTREAM-WINDOWED-0000000003", False),
        ("clicks-this-join", "clicks-this-windowed", True),
        ("clicks-outer-this-join", "clicks-this-windowed", True),
        ("clicks-other-join", "clicks-this-windowed", False),
        ("views-this-join", "clicks-this-windowed", False),
    ],
)
def test_the_join_below_a_windowed_node_has_its_name(child: str, windowed: str, *, expected: bool) -> None:
    assert names.is_child_of_windowed(child, windowed) is expected


def test_suppressions_and_source_tables_take_two_indices_in_a_row() -> None:
    assert names.is_suppression("KTABLE-SUPPRESS-0000000007", "KTABLE-SUPPRESS-STATE-STORE-0000000008")
    assert not names.is_suppression("KTABLE-SUPPRESS-0000000007", "KTABLE-SUPPRESS-STATE-STORE-0000000010")
    assert names.is_source_table("KTABLE-SOURCE-0000000002", "KSTREAM-SOURCE-0000000001")
    assert not names.is_source_table("KTABLE-SOURCE-0000000004", "KSTREAM-SOURCE-0000000001")
    assert names.is_source_table("rates", "rates-source")


def test_a_merge_belongs_to_the_cogroup_with_its_name() -> None:
    assert names.is_merge_of_cogroup("totals-cogroup-merge", "totals-cogroup-agg-1")
    assert not names.is_merge_of_cogroup("sums-cogroup-merge", "totals-cogroup-agg-1")
    assert names.is_merge_of_cogroup("COGROUPKSTREAM-MERGE-0000000009", "COGROUPKSTREAM-AGGREGATE-0000000006")


def test_a_subscription_store_is_used_by_nodes_of_foreign_key_joins_only() -> None:
    receiver = "rates-subscription-receive"
    assert names.is_subscription_store("rates-subscription-store", [receiver])
    assert not names.is_subscription_store("rates-subscription-store", ["my-processor"])
    assert not names.is_subscription_store("rates-store", [receiver])


def test_only_repartition_may_have_an_explicit_count() -> None:
    assert names.can_be_explicit("KSTREAM-REPARTITION-0000000002-repartition")
    assert names.can_be_explicit("by-customer-repartition")
    assert not names.can_be_explicit("KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition")
    assert not names.can_be_explicit("rates-subscription-response-topic")


def test_the_index_of_a_name_is_its_ten_digits() -> None:
    assert names.index_in("KSTREAM-FILTER-0000000012") == 12
    assert names.index_in("orders-7") is None
