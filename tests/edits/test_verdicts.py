"""Edits of one thing at a time, and what they do to each topic."""

import pytest

from headwater.model.cluster import ClusterSnapshot, LiveTopic
from headwater.model.nodes import TopicKind
from headwater.planner.edits import Verdict
from tests.edits.sides import COUNT, GENERATED, REDUCE, edit, of_one, verdicts

_NAMED = GENERATED.replace("- count:", "- count: {materialized: counts}").replace(
    "- reduce:", "- reduce: {materialized: totals}"
)
_TABLE = """
application: {id: app, kafkaStreams: "4.3", config: {topology.optimization: all}}
topology:
  - table: {topic: table, as: t, materialized: t}
  - toStream:
  - to: out
"""
_WINDOWED = """
application: {id: app}
topology:
  - stream: in
  - groupByKey:
  - windowedBy: {tumbling: {size: 1h}}
  - count: {materialized: counts}
"""
_JOINED = """
application: {id: app, kafkaStreams: "4.3"}
topology:
  - table: {topic: table, as: t, materialized: t}
  - stream: in
  - selectKey:
  - join: {with: t}
  - to: out
"""
_TWO_KEYS = """
application: {id: app}
topology:
  - stream: {topic: in, as: s}
  - selectKey: {from: s, as: left}
  - selectKey: {from: s, as: right}
  - join: {from: left, with: right, window: {difference: 1s, grace: 1s}, storeName: joined}
"""
_SUPPRESSED = """
application: {id: app}
topology:
  - stream: in
  - groupByKey:
  - count: {materialized: counts}
  - suppress: {until: timeLimit, timeLimit: 5s}
  - mapValues: {value: value, materialized: mapped}
  - suppress: {until: timeLimit, timeLimit: 5s}
  - toStream:
  - to: out
"""


def test_the_same_documents_keep_everything() -> None:
    found = edit(GENERATED, GENERATED)

    assert not found.has_changes
    assert found.is_complete
    assert set(verdicts(found.applications[0]).values()) == {"kept"}
    assert found.applications[0].is_rolling


def test_an_inserted_operator_renames_all_generated_names_after_it() -> None:
    found = of_one(GENERATED, GENERATED.replace("- selectKey:", "- filter:\n  - selectKey:"))

    assert set(verdicts(found).values()) == {"renamed"}
    assert {(topic.former, topic.topic) for topic in found.topics if topic.store} == {
        (f"app-{COUNT}-changelog", "app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"),
        (f"app-{REDUCE}-changelog", "app-KSTREAM-REDUCE-STATE-STORE-0000000010-changelog"),
    }
    assert [line.document for line in found.lines] == [f"materialized: {COUNT}", f"materialized: {REDUCE}"]
    assert found.still_lost == ()
    assert "different tasks" in found.obstacle


def test_the_lines_keep_every_name() -> None:
    edited = GENERATED.replace("- selectKey:", "- filter:\n  - selectKey:")
    named = edited.replace("- count:", f"- count: {{materialized: {COUNT}}}").replace(
        "- reduce:", f"- reduce: {{materialized: {REDUCE}}}"
    )

    assert set(verdicts(of_one(GENERATED, named)).values()) == {"kept"}
    assert of_one(GENERATED, named).is_rolling


def test_names_of_users_are_kept() -> None:
    found = of_one(_NAMED, _NAMED.replace("- selectKey:", "- filter:\n  - selectKey:"))

    assert set(verdicts(found).values()) == {"kept"}
    assert found.is_rolling
    assert not found.has_changes


def test_a_renamed_store_is_found_and_the_line_gives_it_its_former_name() -> None:
    found = of_one(_NAMED, _NAMED.replace("counts", "amounts"))

    assert verdicts(found)["amounts"] == "renamed"
    assert verdicts(found)["totals"] == "kept"
    assert [line.document for line in found.lines] == ["materialized: counts"]
    assert found.still_lost == ()


@pytest.mark.parametrize(
    ("store", "written"), [("2024", '"2024"'), ("null", '"null"'), ("totals-2", "totals-2")]
)
def test_a_line_is_yaml_of_a_text(store: str, written: str) -> None:
    (line,) = of_one(_NAMED.replace("counts", f"'{store}'"), _NAMED).lines

    assert line.document == f"materialized: {written}"
    assert line.code == f'Materialized.as("{store}")'


def test_a_line_that_shifts_other_names_brings_lines_for_them() -> None:
    after = GENERATED.replace("- count:", "- count: {materialized: counts}")
    found = of_one(GENERATED, after)

    assert verdicts(found)["counts"] == "renamed"
    assert [line.document for line in found.lines] == [f"materialized: {COUNT}", f"materialized: {REDUCE}"]
    assert found.still_lost == ()


def test_a_name_that_now_belongs_to_another_operator_is_reset() -> None:
    before = """
application: {id: app}
topology:
  - stream: {topic: in, as: s}
  - groupByKey: {from: s}
  - count:
  - stream: {topic: other, as: o}
  - groupByKey: {from: o}
  - count:
"""
    after = (
        before.replace("  - stream: {topic: in, as: s}\n  - groupByKey: {from: s}\n  - count:\n", "")
        + "  - stream: {topic: in, as: s}\n  - groupByKey: {from: s}\n  - count:\n"
    )
    found = of_one(before, after)

    assert set(verdicts(found).values()) == {"reset"}
    assert all("another operator" in topic.what for topic in found.topics)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("tumbling: {size: 1h}", "tumbling: {size: 1h, grace: 1ms}"), ("kept", "info")),
        (("tumbling: {size: 1h}", "tumbling: {size: 1h, grace: 5m}"), ("kept", "warning")),
        (("tumbling: {size: 1h}", "tumbling: {size: 2h}"), ("kept", "warning")),
        (("tumbling: {size: 1h}", "session: {gap: 1h}"), ("reset", "error")),
        (("- windowedBy: {tumbling: {size: 1h}}\n", ""), ("reset", "error")),
        (("count: {materialized: counts}", "reduce: {materialized: counts}"), ("reset", "error")),
        (
            ("{materialized: counts}", "{materialized: {store: counts, serdes: {key: integer}}}"),
            ("reset", "error"),
        ),
        (("{materialized: counts}", "{materialized: {store: counts, type: in-memory}}"), ("kept", "info")),
    ],
)
def test_windows_and_formats(change: tuple[str, str], expected: tuple[str, str]) -> None:
    after = _WINDOWED.replace(*change) if change[1] else _WINDOWED.replace(f"  {change[0]}", "")
    (topic,) = of_one(_WINDOWED, after).topics

    assert (topic.verdict.value, topic.severity.value) == expected, topic


def test_changed_settings_of_a_kept_topic_are_named() -> None:
    found = of_one(_WINDOWED, _WINDOWED.replace("size: 1h", "size: 1h, grace: 5m"))

    (topic,) = found.topics
    assert "retention.ms from 90000000 (25 hours) to 90300000 (25 hours and 5 minutes)" in topic.why
    assert "pulumi up" in topic.first
    assert found.has_changes


def test_a_versioned_store_reads_the_changelog_of_a_plain_one() -> None:
    versioned = "{supplier: {name: counts, kind: versionedKeyValue, retention: 1h}}"
    plain = _WINDOWED.replace("  - windowedBy: {tumbling: {size: 1h}}\n", "")
    (topic,) = of_one(plain, plain.replace("materialized: counts", f"materialized: {versioned}")).topics

    assert topic.verdict is Verdict.KEPT
    assert "min.compaction.lag.ms" in topic.first


def test_an_explicit_count_moves_keys() -> None:
    after = _JOINED.replace("- join:", "- repartition: {name: by-key}\n  - join:")
    found = of_one(after, after.replace("{name: by-key}", "{name: by-key, partitions: 4}"))
    assert set(verdicts(found).values()) == {"kept"}

    counted = of_one(
        GENERATED.replace("- selectKey:", "- repartition: {name: r, partitions: 2}"),
        GENERATED.replace("- selectKey:", "- repartition: {name: r, partitions: 3}"),
    )
    assert verdicts(counted)["r-repartition"] == "moved"
    assert "other partition counts" in counted.obstacle


def test_a_store_that_leaves_its_source_topic_is_reset_and_the_reverse_is_rebuilt() -> None:
    none = _TABLE.replace("all", "none")

    leaving = of_one(_TABLE, none)
    assert verdicts(leaving)["t"] == "reset"
    assert "committed offsets" in leaving.topics[0].why
    entering = of_one(none, _TABLE)
    assert sorted(topic.verdict.value for topic in entering.topics) == ["orphaned", "rebuilt"]


def test_a_store_that_reads_its_source_topic_with_other_serdes_is_reset() -> None:
    text = _TABLE.replace("materialized: t", "materialized: t, serdes: {key: string, value: json}")
    (topic,) = of_one(text, text.replace("value: json", "value: string")).topics

    assert (topic.verdict, topic.severity.value) == (Verdict.RESET, "error")
    assert "Its values are json, not string" in topic.why
    assert "again with the new serdes" in topic.first


def test_a_store_that_is_restored_from_another_source_topic_is_rebuilt() -> None:
    (topic,) = of_one(_TABLE, _TABLE.replace("topic: table", "topic: other")).topics

    assert topic.verdict is Verdict.REBUILT
    assert topic.what == "Store t is restored from source topic other instead of table."


def test_disabled_logging_orphans_the_changelog() -> None:
    after = _NAMED.replace("{materialized: totals}", "{materialized: {store: totals, logging: false}}")
    (orphan,) = [each for each in of_one(_NAMED, after).topics if each.verdict is Verdict.ORPHANED]

    assert orphan.topic == "app-totals-changelog"
    assert "no changelog any more" in orphan.why


def test_a_removed_operator_leaves_an_orphaned_topic() -> None:
    after = _NAMED.replace("  - groupByKey: {from: s}\n  - reduce: {materialized: totals}\n", "")
    assert verdicts(of_one(_NAMED, after)) == {
        "counts": "kept",
        "counts-repartition": "kept",
        "totals": "orphaned",
    }


def test_records_in_flight_are_named_and_drained_first() -> None:
    after = _JOINED.replace("- join: {with: t}", "- join: {with: t, name: joined}")
    found = of_one(_JOINED, after)

    assert verdicts(found)["joined-repartition"] == "renamed"
    assert any("never processed" in remark for remark in found.remarks)
    assert "lag of 0" in found.steps[0]


def test_a_former_topic_that_another_operator_uses_keeps_no_records_unread() -> None:
    shifted = "- filter: {from: s}\n  - selectKey: {from: s, as: left}"
    after = _TWO_KEYS.replace("- selectKey: {from: s, as: left}", shifted)
    found = of_one(_TWO_KEYS, after)
    by_topic = {each.topic: each for each in found.topics if each.kind is not TopicKind.CHANGELOG}

    taken = by_topic["app-KSTREAM-KEY-SELECT-0000000002-repartition"]
    assert (taken.verdict, taken.former) == (Verdict.RESET, "app-KSTREAM-KEY-SELECT-0000000001-repartition")
    renamed = by_topic["app-KSTREAM-KEY-SELECT-0000000003-repartition"]
    assert (renamed.verdict, renamed.former) == (Verdict.RENAMED, taken.topic)
    assert "Another operator uses the old topic after the edit" in renamed.why
    assert not any("never processed" in remark for remark in found.remarks)


def test_state_can_be_copied_unless_another_store_uses_the_former_topic() -> None:
    one, three = (
        _SUPPRESSED.replace("  - groupByKey:", "  - filter:\n" * more + "  - groupByKey:") for more in (1, 3)
    )
    renamed = [each for each in of_one(_SUPPRESSED, one).topics if each.former is not None]
    assert len(renamed) == 2
    assert all("copy the state (`headwater state copy`)" in each.first for each in renamed)

    shifted = {each.verdict: each for each in of_one(_SUPPRESSED, three).topics if each.former is not None}
    assert shifted.keys() == {Verdict.RENAMED, Verdict.RESET}
    assert shifted[Verdict.RENAMED].former == shifted[Verdict.RESET].topic
    assert "a changelog that another store uses" in shifted[Verdict.RENAMED].why
    assert not any("state copy" in each.first for each in shifted.values())


def test_new_and_former_source_topics_are_named() -> None:
    found = of_one(_NAMED, _NAMED.replace("topic: in", "topic: other"))
    text = " ".join(found.remarks)

    assert "No offset is committed for other" in text
    assert "Committed offsets of in stay" in text


def test_a_changed_topology_of_a_streams_group_needs_a_new_group() -> None:
    streams = GENERATED.replace('"4.3"', '"4.3", config: {group.protocol: streams}')
    inserted = streams.replace("- selectKey:", "- filter:\n  - selectKey:")
    found = of_one(streams, inserted)

    assert found.needs_new_group
    assert any("KAFKA-20170" in step for step in found.steps)
    lag = "`kafka-streams-groups.sh --bootstrap-server BROKER --describe --group app` shows a lag of 0"
    assert any(lag in step for step in found.steps)
    assert not any("twice or never" in remark for remark in found.remarks)
    assert not of_one(streams, f"{streams}  - toStream:\n").needs_new_group


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_another_output_topic_changes_no_task_and_no_group(protocol: str) -> None:
    text = GENERATED.replace("id: app", f"id: app, protocol: {protocol}")
    found = of_one(text, text.replace("to: out", "to: results"))

    assert found.is_rolling
    assert not found.needs_new_group
    assert not found.has_changes


def test_a_later_version_brings_what_it_changes_for_data() -> None:
    found = of_one(_NAMED.replace("4.3", "4.2"), _NAMED)

    assert found.is_rolling
    assert any("local state (KIP-1035, since 4.3.0)" in remark for remark in found.remarks)


def test_an_earlier_version_is_no_rolling_restart() -> None:
    found = of_one(_NAMED, _NAMED.replace("4.3", "4.2"))

    assert found.obstacle == "Kafka Streams does not support downgrades"
    assert "Delete the local state of all instances, and start the new version." in found.steps


def test_another_application_id_renames_every_topic() -> None:
    found = of_one(_NAMED, _NAMED.replace("id: app", "id: next"))

    assert found.former_id == "app"
    assert {topic.verdict for topic in found.topics} == {Verdict.RENAMED}
    assert found.obstacle == "the application id changes"
    assert all("application id" in topic.first for topic in found.topics if topic.store is not None)


def test_a_renamed_application_is_found_among_others() -> None:
    other = f"\n---\n{_NAMED.replace('id: app', 'id: other')}"
    found = edit(f"{_NAMED}{other}", f"{_NAMED.replace('id: app', 'id: next, renamedFrom: app')}{other}")

    assert [(each.former_id, each.id) for each in found.applications] == [("app", "next"), (None, "other")]
    assert (found.added, found.removed) == ((), ())


def test_errors_of_a_side_are_problems() -> None:
    broken = _NAMED.replace("materialized: totals", "materialized: counts")
    found = edit(_NAMED, broken)

    assert not found.is_complete
    assert found.applications == ()


def test_added_and_removed_applications_are_listed() -> None:
    two = f"{_NAMED}\n---\n{_NAMED.replace('id: app', 'id: second')}"

    assert edit(_NAMED, two).added == ("second",)
    assert edit(two, _NAMED).removed == ("second",)


def _live(partitions: int, *names: str) -> ClusterSnapshot:
    topics = {name: LiveTopic(name, f"id-{name}", partitions, 1, {}) for name in names}
    return ClusterSnapshot("cluster", 1, topics, described=frozenset(topics))


def test_topics_that_do_not_exist_have_no_data_to_lose() -> None:
    filtered = GENERATED.replace("- selectKey:", "- filter:\n  - selectKey:")
    reduce = f"app-{REDUCE}-changelog"
    (found,) = edit(GENERATED, filtered, snapshot=_live(4, "in", reduce)).applications

    assert [topic.former for topic in found.topics if topic.verdict is Verdict.RENAMED] == [reduce]
    assert [line.topic for line in found.lines] == [reduce]


@pytest.mark.parametrize(
    ("config", "severity"), [("{}", "error"), ("{static.partitioner.class: initial-hash}", "warning")]
)
def test_expanded_source_topics_move_keys_unless_the_partitioner_is_static(
    config: str, severity: str
) -> None:
    text = _WINDOWED.replace("id: app", f"id: app, config: {config}")
    (found,) = edit(text, text, snapshot=_live(2, "in", "app-counts-changelog")).applications

    (topic,) = found.topics
    assert (topic.verdict, topic.severity.value) == (Verdict.MOVED, severity)
    assert topic.what == "Store counts has 4 partitions instead of 2."
    assert not found.is_rolling


def test_foreign_key_joins_and_suppressions_have_no_name_that_keeps_them() -> None:
    before = """
application: {id: app}
topology:
  - table: {topic: table, as: t, materialized: t}
  - table: {topic: other, as: o, materialized: o}
  - join: {from: t, with: o, foreignKey: true, materialized: joined}
  - toStream:
  - to: out
"""
    found = of_one(before, before.replace("  - join:", "  - filter: {from: t}\n  - join:"))

    lost = {name for name, verdict in verdicts(found).items() if verdict == "renamed"}
    assert len(lost) == 3  # the subscription store, and the topics of subscriptions and responses
    assert found.lines == ()
    assert all("No name that you can give" in topic.first for topic in found.topics if topic.former)


def test_a_new_table_next_to_others_is_filled_by_its_own_topic_only() -> None:
    """No offset of its topic is committed, whatever else its sub-topology reads."""
    joined = _JOINED.replace("  - to: out", "  - join: {with: u}\n  - to: out")
    found = of_one(
        _JOINED, joined.replace("- stream:", "- table: {topic: other, as: u, materialized: u}\n  - stream:")
    )
    (added,) = (topic for topic in found.topics if topic.store == "u")
    assert added.why == "It is filled by the records that the application reads from now on."

    counted = _JOINED.replace("  - to: out", "  - groupByKey:\n  - count: {materialized: counts}")
    (counts,) = (topic for topic in of_one(_JOINED, counted).topics if topic.store == "counts")
    assert "committed offsets of app-" in counts.why
    assert "table" not in counts.why


_OBSERVED = """
application: {id: app}
observed:
  unknown: [subtopologies]
  sources: {in: 4}
  topics:
    counts-changelog: {kind: changelog, partitions: 4}
"""
_GROUPED = """
application: {id: app}
topology:
  - stream: in
  - groupByKey:
  - count: {materialized: counts}
"""


def test_topics_that_a_cluster_shows_are_not_known_to_be_kept_by_a_topology() -> None:
    found = of_one(_OBSERVED, _GROUPED)

    assert verdicts(found) == {"counts": "unknown"}
    assert "One side has only what a cluster shows" in found.topics[0].why
    assert not found.is_complete
    assert verdicts(of_one(_OBSERVED, _OBSERVED)) == {"counts": "kept"}


def test_another_count_of_a_topic_with_another_format_is_named() -> None:
    """Kafka Streams refuses the count before it reads a record."""
    before = """
application: {id: app}
topology:
  - stream: {topic: in, as: s}
  - groupByKey: {as: g}
  - reduce: {from: g, materialized: s3}
"""
    after = before.replace("  - groupByKey:", "  - repartition: {from: s, partitions: 7}\n  - groupByKey:")
    (store,) = (topic for topic in of_one(before, after.replace("reduce", "count")).topics if topic.store)

    assert store.verdict is Verdict.RESET
    assert "It has 7 partitions instead of 4, too: Kafka Streams does not start" in store.why
