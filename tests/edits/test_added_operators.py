"""Operators that were added or removed, and what that means for names, stores and topics."""

import pytest

from headwater.planner.edits import OperatorEdit
from tests.edits.sides import of_one

_DOCUMENT = """
application: {id: app, kafkaStreams: "4.3"}
topology:
  - stream: {topic: in, as: s}
  - filter: {name: positive, as: p}
  - selectKey:
  - groupByKey:
  - count: {as: counted}
  - toStream:
  - to: out
  - groupByKey: {from: p}
  - count: {materialized: kept}
"""
_GENERATED = "app-KSTREAM-AGGREGATE-STATE-STORE-0000000003"
_STAYS = "What stores and topics contain stays as it was computed before."


def _one_sided(before: str, after: str) -> list[OperatorEdit]:
    return [each for each in of_one(before, after).operators if each.is_on_one_side]


def test_an_added_operator_is_named_with_the_topics_whose_names_it_shifts() -> None:
    (added,) = _one_sided(_DOCUMENT, _DOCUMENT.replace("  - selectKey", "  - peek:\n  - selectKey"))

    assert (added.operator, added.before, added.after) == ("KSTREAM-PEEK-0000000002", None, added.operator)
    assert str(added.location) == "after.yaml:6:5"
    assert added.why.startswith(_STAYS)
    assert f"{_GENERATED}-changelog, {_GENERATED}-repartition" in added.why


def test_a_removed_operator_is_named_at_its_location_before() -> None:
    before = _DOCUMENT.replace("  - selectKey", "  - peek:\n  - selectKey")
    (removed,) = _one_sided(before, _DOCUMENT)

    assert (removed.before, removed.after) == ("KSTREAM-PEEK-0000000002", None)
    assert str(removed.location) == "before.yaml:6:5"
    assert "STORE-0000000004-changelog" in removed.why


@pytest.mark.parametrize("name", ["", " {name: seen}"])
def test_a_removed_operator_right_before_a_topic_shifts_it(name: str) -> None:
    before = _DOCUMENT.replace("  - selectKey:\n", f"  - selectKey:\n  - peek:{name}\n")
    (removed,) = _one_sided(before, _DOCUMENT)

    former = _GENERATED.replace("0003", "0004")
    assert f"after it: {former}-changelog, {former}-repartition." in removed.why


@pytest.mark.parametrize("name", ["", " {name: seen}"])
def test_an_operator_after_all_generated_names_shifts_none(name: str) -> None:
    (added,) = _one_sided(_DOCUMENT, f"{_DOCUMENT}  - toStream:{name}\n")

    assert added.why == _STAYS


def test_a_named_operator_takes_a_number_too() -> None:
    """Kafka Streams counts operators with a name as well (`NamedInternal#orElseGenerateWithPrefix`)."""
    seen = "  - peek: {name: seen}\n"
    before = of_one(_DOCUMENT, _DOCUMENT.replace("  - selectKey", f"{seen}  - selectKey"))
    (added,) = [each for each in before.operators if each.is_on_one_side]
    after = _one_sided(_DOCUMENT, _DOCUMENT.replace("  - to: out", f"{seen}  - to: out"))

    assert f"It shifts the numbers in generated names after it: {_GENERATED}-changelog" in added.why
    assert [each.why for each in after] == [_STAYS]


def test_all_nodes_of_a_call_are_one_operator() -> None:
    join = "  - stream: {topic: other, as: o}\n  - join: {from: s, with: o, window: {difference: 5s}}\n"
    source, joined = _one_sided(_DOCUMENT, _DOCUMENT + join)

    assert source.why == "Where no offset is committed, the offset reset decides where reading starts."
    assert [name.rstrip("0123456789-") for name in joined.operator.split(", ")] == [
        *("KSTREAM-WINDOWED", "KSTREAM-WINDOWED", "KSTREAM-JOINTHIS", "KSTREAM-JOINOTHER", "KSTREAM-MERGE")
    ]
    assert joined.why == "Its state is in the verdicts of its stores."


@pytest.mark.parametrize(
    ("text", "added", "removed"),
    [
        ("  - to: {from: s, topic: copies}\n", "is processed from now on", "no more records"),
        ("  - stream: {topic: other}\n", "offset reset decides", "not read any more"),
        (
            "  - globalTable: {topic: table, materialized: g}\n",
            "reads its whole topic",
            "Delete the local state",
        ),
        ("  - table: {topic: table, materialized: t}\n", "offset reset decides", "not read any more"),
    ],
)
def test_what_added_and_removed_sources_and_sinks_mean(text: str, added: str, removed: str) -> None:
    assert added.replace("is processed", "are processed") in _one_sided(_DOCUMENT, _DOCUMENT + text)[0].why
    assert removed in _one_sided(_DOCUMENT + text, _DOCUMENT)[0].why


def test_an_operator_of_a_described_text_that_was_added_is_named() -> None:
    def text(nodes: str) -> str:
        return f"application: {{id: app}}\ndescribe:\n  text: |\n{nodes}"

    source = (
        "    Topologies:\n       Sub-topology: 0\n"
        "        Source: KSTREAM-SOURCE-0000000000 (topics: [in])\n          --> {}\n"
    )
    sink = "        Sink: KSTREAM-SINK-000000000{} (topic: out)\n          <-- {}\n"
    peek = (
        "        Processor: KSTREAM-PEEK-0000000001 (stores: [])\n          --> KSTREAM-SINK-0000000002\n"
        "          <-- KSTREAM-SOURCE-0000000000\n"
    )
    before = source.format("KSTREAM-SINK-0000000001") + sink.format(1, "KSTREAM-SOURCE-0000000000")
    after = source.format("KSTREAM-PEEK-0000000001") + peek + sink.format(2, "KSTREAM-PEEK-0000000001")

    assert [each.operator for each in _one_sided(text(before), text(after))] == ["KSTREAM-PEEK-0000000001"]
