"""Names of nodes, stores and repartition topics, with the indices that they take."""

import pytest

from headwater.compiler.dsl.builder import Names, looks_generated, name_error, repartition_topic


def test_generated_and_given_names_take_the_same_indices() -> None:
    names = Names()
    assert names.processor("KSTREAM-FILTER-") == "KSTREAM-FILTER-0000000000"
    assert names.given_or_next("mine", "KSTREAM-MAP-") == "mine"
    assert names.given_or_next(None, "KSTREAM-MAP-") == "KSTREAM-MAP-0000000002"
    names.skip_index()
    assert names.store("KSTREAM-REDUCE-") == "KSTREAM-REDUCE-STATE-STORE-0000000004"


def test_only_names_of_this_counter_carry_its_index() -> None:
    names = Names()
    generated = names.processor("KSTREAM-FILTER-")
    assert names.carries_index(f"{generated}-repartition")
    assert not names.carries_index("KSTREAM-FILTER-0000000001")
    assert not names.carries_index("filter")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("orders.by_customer-1", None),
        ("", "it is empty"),
        ("..", 'it is "." or ".."'),
        ("n" * 249, None),
        ("n" * 250, "it has 250 characters, more than 249"),
        ("two words", "it has a character other than ASCII letters, digits, '.', '_' and '-'"),
        ("naïve", "it has a character other than ASCII letters, digits, '.', '_' and '-'"),
    ],
)
def test_names_are_refused_as_by_kafka_streams(name: str, error: str | None) -> None:
    assert name_error(name) == error


@pytest.mark.parametrize(
    ("prefix", "topic", "is_generated"),
    [
        ("wide", "wide-repartition", False),
        ("wide-repartition", "wide-repartition", False),
        ("KSTREAM-MAP-0000000003", "KSTREAM-MAP-0000000003-repartition", True),
        ("KSTREAM-MAP-00000000031", "KSTREAM-MAP-00000000031-repartition", False),
        ("KTABLE-MAP-0000000003", "KTABLE-MAP-0000000003-repartition", False),
    ],
)
def test_the_prefix_of_a_repartition_topic_decides_its_name(
    prefix: str, topic: str, *, is_generated: bool
) -> None:
    assert repartition_topic(prefix) == topic
    assert looks_generated(prefix) is is_generated
