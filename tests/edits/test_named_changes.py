"""What changes of an operator: inputs, joined tables, source topics, serdes, and their consequences."""

import pytest

from headwater.planner.edits import OperatorEdit
from tests.edits.sides import changed, of_one

_STREAM = """
application: {id: app}
topology:
  - stream: {topics: [in, other], as: s, serdes: {key: string, value: json}}
  - filter: {where: value.a > 0}
  - selectKey: {key: value.id, as: keyed}
  - groupByKey: {name: g}
  - count: {materialized: counts}
  - toStream:
  - to: {topic: out, serdes: {key: string, value: long}}
"""
_JOINED = """
application: {id: app}
topology:
  - table: {topic: table, as: t, materialized: t}
  - table: {topic: other, as: u, materialized: u}
  - stream: {topic: in, as: s}
  - join: {from: s, with: t, name: joined}
  - groupByKey:
  - count: {materialized: counts}
"""
_GLOBAL = """
application: {id: app}
topology:
  - globalTable: {topic: table, as: t, materialized: t, serdes: {key: string, value: json}}
  - stream: in
  - join: {with: t, key: key, name: joined}
  - to: out
"""
_TWO = """
application: {id: app}
topology:
  - stream: {topic: in, as: a}
  - stream: {topic: other, as: b}
  - filter: {from: a, name: large, where: value > 1}
  - to: out
"""


def _changes(before: str, *edits: tuple[str, str]) -> list[OperatorEdit]:
    after = before
    for old, new in edits:
        assert old in after
        after = after.replace(old, new)
    return list(changed(of_one(before, after)))


def _texts(operators: list[OperatorEdit]) -> list[tuple[str, str | None, str | None]]:
    return [(each.aspect, each.before, each.after) for each in operators]


def test_source_topics_are_named_with_the_stores_that_keep_their_results() -> None:
    (change,) = _changes(_STREAM, ("[in, other]", "[in, table]"))

    assert (change.aspect, change.before, change.after) == ("topics", "in, other", "in, table")
    assert "results of the former topics" in change.why
    assert change.stores == ("counts",)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (("value: json", "value: string"), ("serde of values", "json", "string")),
        (("key: string, value: json", "key: long, value: json"), ("serde of keys", "string", "long")),
    ],
)
def test_the_serde_of_a_source_concerns_records_that_are_not_processed(
    edit: tuple[str, str], expected: tuple[str, str, str]
) -> None:
    first = _changes(_STREAM, edit)[0]

    assert (first.aspect, first.before, first.after) == expected
    assert "not processed before the edit must have the new format" in first.why


def test_the_serde_of_a_sink_concerns_its_readers() -> None:
    (change,) = _changes(_STREAM, ("value: long", "value: string"))

    assert (change.aspect, change.before, change.after) == ("serde of values", "long", "string")
    assert "records of both formats" in change.why
    assert change.stores == ()


def test_default_serdes_are_serdes_of_sources_and_sinks() -> None:
    plain = _TWO.replace("id: app", "id: app, config: {default.value.serde: long}")

    assert {
        (each.aspect, each.before, each.after) for each in _changes(plain, ("serde: long", "serde: json"))
    } == {("serde of values", "long", "json")}


def test_the_default_timestamp_extractor_is_a_timestamp_of_sources() -> None:
    (change,) = _changes(
        _TWO, ("id: app", "id: app, config: {default.timestamp.extractor: WallclockTimestampExtractor}")
    )[:1]

    assert (change.aspect, change.before, change.after) == ("timestamp", None, "WallclockTimestampExtractor")


def test_another_joined_table_is_named() -> None:
    found = of_one(_JOINED, _JOINED.replace("with: t", "with: u"))

    (change,) = changed(found)
    assert (change.operator, change.aspect) == ("joined", "joined table")
    assert (change.before, change.after) == ("from table", "from other")
    assert change.stores == ("counts",)
    (counts,) = [topic for topic in found.topics if topic.store == "counts"]
    assert "results of table, which is not read any more" in counts.why


def test_a_table_that_is_only_materialized_is_the_same_table() -> None:
    filtered = _JOINED.replace("with: t", "with: f").replace(
        "  - stream:", "  - filter: {from: t, as: f, where: value > 1, name: x}\n  - stream:"
    )

    assert not _changes(filtered, ("name: x}", "name: x, materialized: kept}"))


def test_another_topic_of_a_global_table_needs_new_local_state() -> None:
    source, join = _changes(_GLOBAL, ("topic: table", "topic: other"))

    assert (source.aspect, source.before, source.after) == ("topics", "table", "other")
    assert "delete the local state of the global store" in source.why
    assert (join.operator, join.aspect) == ("joined", "joined table")


def test_the_serde_of_a_global_table_concerns_all_its_records() -> None:
    changes = _changes(_GLOBAL, ("value: json", "value: string"))

    assert changes[0].why == "All records of the topic must have the new format."


def test_another_input_is_named_by_topic_or_operator() -> None:
    assert _texts(_changes(_TWO, ("from: a", "from: b"))) == [("input", "in", "other")]
    rewired = _changes(
        _STREAM.replace("groupByKey: {", "groupByKey: {from: keyed, "), ("from: keyed", "from: s")
    )
    assert ("input", "KSTREAM-KEY-SELECT-0000000002", "in, other") in _texts(rewired)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  - filter: {where: value.a > 0}\n", ""),
        ("  - filter: {where: value.a > 0}\n", "  - peek:\n  - filter: {where: value.a > 0}\n"),
        ("  - selectKey", "  - mapValues:\n  - mapValues:\n  - selectKey"),
        ("name: g", "name: h"),
        ("materialized: counts", "materialized: totals"),
    ],
)
def test_added_and_removed_operators_are_no_other_input(old: str, new: str) -> None:
    assert not _changes(_STREAM, (old, new))


def test_a_move_of_equal_operators_is_no_other_input() -> None:
    first, second = "  - filter: {from: a, as: fa}\n", "  - filter: {from: b, as: fb}\n"
    text = _TWO.replace("  - filter: {from: a, name: large, where: value > 1}\n", f"{first}{second}")
    peeked = text.replace(first + second, f"  - peek: {{from: a}}\n{second}{first}").replace(
        "  - to: out", "  - to: {from: fa, topic: out}"
    )

    assert not [
        each
        for each in changed(of_one(text.replace("  - to: out", "  - to: {from: fa, topic: out}"), peeked))
        if each.aspect == "input" and "FILTER" in each.operator
    ]


def test_texts_show_topics_and_inputs_and_not_serdes() -> None:
    def text(topic: str, out: str, table: str) -> str:
        return f"""
application: {{id: app}}
describe:
  text: |
    Topologies:
       Sub-topology: 0
        Source: s (topics: [{topic}])
          --> j
        Processor: j (stores: [t])
          --> o
          <-- s
        Source: ts (topics: [{table}])
          --> tp
        Sink: o (topic: {out})
          <-- j
        Processor: tp (stores: [t])
          --> none
          <-- ts
"""

    old = text("in", "out", "table")
    found = changed(of_one(old, text("other", "results", "table")))
    assert _texts(list(found)) == [("topics", "in", "other"), ("topic", "out", "results")]


_TEXT = """
application: {id: app}
describe:
  text: |
    Topologies:
       Sub-topology: 0
        Source: KSTREAM-SOURCE-0000000006 (topics: [in])
          --> KSTREAM-JOIN-0000000007
        Processor: KSTREAM-JOIN-0000000007 (stores: [STORE])
          --> KSTREAM-AGGREGATE-0000000008
          <-- KSTREAM-SOURCE-0000000006
        Source: KSTREAM-SOURCE-0000000001 (topics: [table])
          --> KTABLE-SOURCE-0000000002
        Source: KSTREAM-SOURCE-0000000004 (topics: [other])
          --> KTABLE-SOURCE-0000000005
        Processor: KSTREAM-AGGREGATE-0000000008 (stores: [counts])
          --> none
          <-- KSTREAM-JOIN-0000000007
        Processor: KTABLE-SOURCE-0000000002 (stores: [t])
          --> none
          <-- KSTREAM-SOURCE-0000000001
        Processor: KTABLE-SOURCE-0000000005 (stores: [u])
          --> none
          <-- KSTREAM-SOURCE-0000000004
"""


def test_a_joined_table_of_a_text_is_named_and_what_is_after_it_is_not_known() -> None:
    found = of_one(_TEXT.replace("STORE", "t"), _TEXT.replace("STORE", "u"))

    assert _texts(list(changed(found))) == [("joined table", "from table", "from other")]
    assert {topic.store: topic.verdict.value for topic in found.topics} == {
        "counts": "unknown",
        "t": "kept",
        "u": "kept",
    }
    assert not found.is_complete


def test_a_repartition_is_no_input_and_is_no_operator_of_a_user() -> None:
    keyed = _STREAM.replace("groupByKey: {", "groupByKey: {from: keyed, ")
    found = _changes(keyed, ("{key: value.id, as: keyed}", "{key: value.id, as: keyed}\n  - repartition:"))
    removed = _changes(_STREAM, ("  - to: {topic: out, serdes: {key: string, value: long}}\n", ""))

    assert _texts(found) == []
    assert _texts(removed) == []


_CONTACTS = """
application: {id: app}
topology:
  - table: {topic: table, as: t, materialized: t, serdes: {key: string, value: json}}
  - mapValues: {from: t, value: value.email, as: emails}
  - mapValues: {from: t, value: value.phone, as: phones}
  - stream: {topic: in, as: s}
  - join: {from: s, with: emails, name: joined}
  - groupByKey:
  - count: {materialized: counts}
"""


@pytest.mark.parametrize(
    "stored", [("", ""), (", materialized: e", ", materialized: p"), (", materialized: e", "")]
)
@pytest.mark.parametrize("added", ["", "  - peek: {from: s}\n"])
def test_another_table_of_the_same_topic_is_named(stored: tuple[str, str], added: str) -> None:
    before = _CONTACTS.replace("as: emails", f"as: emails{stored[0]}").replace(
        "as: phones", f"as: phones{stored[1]}"
    )
    shifted = before.replace(
        "  - mapValues: {from: t, value: value.email", f"{added}  - mapValues: {{from: t, value: value.email"
    )
    if added:
        shifted = before.replace("  - join", f"{added}  - join")

    assert [each.aspect for each in changed(of_one(before, shifted))] == []
    assert [
        each.aspect for each in changed(of_one(before, shifted.replace("with: emails", "with: phones")))
    ] == ["joined table"]


@pytest.mark.parametrize("added", ["", "  - peek: {from: s}\n"])
def test_a_count_instead_of_a_reduction_of_the_same_topic_is_another_table(added: str) -> None:
    before = """
application: {id: app}
topology:
  - stream: {topic: other, as: o}
  - groupByKey: {as: g}
  - count: {from: g, as: number, materialized: number}
  - reduce: {from: g, as: last, materialized: last}
  - stream: {topic: in, as: s}
  - join: {from: s, with: number, name: joined}
  - to: out
"""
    found = of_one(
        before, before.replace("with: number", "with: last").replace("  - join", f"{added}  - join")
    )
    (change,) = changed(found)

    assert (change.operator, change.aspect, change.before, change.after) == (
        "joined",
        "joined table",
        "number",
        "last",
    )


_SPLIT = """
application: {id: app}
topology:
  - stream: {topic: in, serdes: {key: string, value: json}}
  - split:
      name: by-size-
      branches:
        - {where: value.size > 9, name: large, as: large}
        - {where: value.size > 1, name: small, as: small}
      default: {name: none, as: none}
  - groupByKey: {from: large}
  - count: {materialized: large}
  - groupByKey: {from: small}
  - count: {materialized: small}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [("value.size > 9, name: large", "value.size > 9, name: small"), ("name: none", "name: other")],
)
@pytest.mark.parametrize("splitter", ["      name: by-size-\n", ""])
def test_another_branch_of_a_condition_is_named(old: str, new: str, splitter: str) -> None:
    before = _SPLIT.replace("      name: by-size-\n", splitter)
    edited = before.replace(old, new)
    if "name: small" in new:
        edited = edited.replace("value.size > 1, name: small", "value.size > 1, name: large")

    assert "conditions" in [each.aspect for each in changed(of_one(before, edited))]
    assert "conditions" not in [
        each.aspect for each in changed(of_one(before, before.replace("  - split", "  - peek:\n  - split")))
    ]


@pytest.mark.parametrize("new", ["      name: size-\n", ""])
def test_another_name_of_a_split_changes_no_condition(new: str) -> None:
    without = _SPLIT.replace("name: large, ", "").replace(
        "default: {name: none, as: none}", "default: {as: none}"
    )
    for before in (_SPLIT, without):
        assert not changed(of_one(before, before.replace("      name: by-size-\n", new)))


def test_a_join_of_a_text_with_another_table_of_the_same_topic_is_not_known() -> None:
    text = _TEXT.replace("topics: [other]", "topics: [table]")
    found = of_one(text.replace("STORE", "t"), text.replace("STORE", "u"))

    assert {topic.store: topic.verdict.value for topic in found.topics} == {
        "counts": "unknown",
        "t": "kept",
        "u": "kept",
    }
    assert [each.aspect for each in changed(found)] == ["joined table"]


def test_a_join_of_a_text_with_another_generated_store_is_not_known() -> None:
    stores = {"t": "KTABLE-STATE-STORE-0000000003", "u": "KTABLE-STATE-STORE-0000000005"}
    text = _TEXT.replace("topics: [other]", "topics: [table]").replace(
        "stores: [t]", f"stores: [{stores['t']}]"
    )
    text = text.replace("stores: [u]", f"stores: [{stores['u']}]")
    found = of_one(text.replace("STORE]", f"{stores['t']}]"), text.replace("STORE]", f"{stores['u']}]"))
    same = of_one(text.replace("STORE]", f"{stores['t']}]"), text.replace("STORE]", f"{stores['t']}]"))

    assert {topic.store: topic.verdict.value for topic in found.topics}["counts"] == "unknown"
    assert {topic.verdict.value for topic in same.topics} == {"kept"}
