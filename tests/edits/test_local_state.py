"""Stores whose changelog is kept, but whose files on local disks cannot be read afterwards."""

import pytest

from headwater.planner.edits import ApplicationEdit, TopicEdit, Verdict
from tests.edits.sides import of_one

_WINDOWED = """
application: {id: app}
topology:
  - stream: in
  - groupByKey:
  - windowedBy: {tumbling: {size: 1h}}
  - count: {materialized: counts}
"""
_SMALL = _WINDOWED.replace("size: 1h", "size: 10s")
_SESSIONS = _WINDOWED.replace("tumbling: {size: 1h}", "session: {gap: 1h}")
_VERSIONED = """
application: {id: app}
topology:
  - table:
      topic: table
      materialized: {supplier: {name: prices, kind: versionedKeyValue, retention: 1h}}
"""
_JOINED = """
application: {id: app}
topology:
  - stream: {topic: in, as: a}
  - stream: {topic: other, as: b}
  - join: {from: a, with: b, storeName: pairs, window: {difference: 1h}}
"""


def _edit(text: str, old: str, new: str) -> tuple[ApplicationEdit, list[TopicEdit]]:
    assert old in text
    found = of_one(text, text.replace(old, new))
    return found, [topic for topic in found.topics if "local disks" in topic.why]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (_WINDOWED, "size: 1h", "size: 1h, grace: 5m"),
        (_WINDOWED, "size: 1h}}", "size: 1h}, emit: onWindowClose}"),
        (_WINDOWED, "{materialized: counts}", "{materialized: {store: counts, retention: 2h}}"),
        (_SESSIONS, "gap: 1h", "gap: 1h, grace: 5m"),
        (_SESSIONS, "gap: 1h}}", "gap: 1h}, emit: onWindowClose}"),
        (_SMALL, "size: 10s", "size: 10s, grace: 5m"),
        (_VERSIONED, "retention: 1h", "retention: 1d"),
        (_JOINED, "difference: 1h", "difference: 1h, grace: 5m"),
    ],
)
def test_files_with_another_layout_are_deleted_while_all_instances_are_stopped(
    text: str, old: str, new: str
) -> None:
    found, topics = _edit(text, old, new)

    assert topics
    assert {(topic.verdict, topic.severity.value) for topic in topics} == {(Verdict.KEPT, "warning")}
    assert all("delete their local state" in topic.first for topic in topics)
    assert not found.is_rolling
    assert "Delete the local state of all instances, and start the new version." in found.steps


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (_SMALL, "size: 10s", "size: 10s, grace: 30s"),
        (_WINDOWED, "size: 1h", "size: 1h, grace: 1ms"),
        (
            _WINDOWED.replace("counts}", "{store: counts, type: in-memory}}"),
            "size: 1h",
            "size: 1h, grace: 5m",
        ),
        (
            _WINDOWED.replace("id: app", "id: app, config: {default.dsl.store: in_memory}"),
            "size: 1h",
            "size: 1h, grace: 5m",
        ),
    ],
    ids=["segments have at least a minute", "the same interval", "in memory", "in memory by default"],
)
def test_a_rolling_restart_is_safe_if_files_can_be_read(text: str, old: str, new: str) -> None:
    found, topics = _edit(text, old, new)

    assert not topics
    assert found.is_rolling


def test_a_retention_of_a_document_from_code_is_compared() -> None:
    text = """
application: {id: app}
describe:
  text: |
    Topologies:
       Sub-topology: 0
        Source: s (topics: [in])
          --> p
        Processor: p (stores: [w])
          --> none
          <-- s
  stores: {w: {kind: window, retention: 1h}}
"""
    found, topics = _edit(text, "retention: 1h", "retention: 2h")

    assert [topic.store for topic in topics] == ["w"]
    assert not found.is_rolling
    assert of_one(text, text).is_rolling


@pytest.mark.parametrize(
    ("old", "new", "phrase"),
    [
        ("tumbling: {size: 1h}", "hopping: {size: 1h, advance: 10m}", "hopping, 1 hour every 10 minutes"),
        ("tumbling: {size: 1h}", "sliding: {difference: 1h}", "sliding, 1 hour"),
        ("size: 1h", "size: 2h", "tumbling, 2 hours"),
    ],
)
def test_entries_of_other_windows_are_kept_with_a_warning(old: str, new: str, phrase: str) -> None:
    (topic,) = of_one(_WINDOWED, _WINDOWED.replace(old, new)).topics

    assert (topic.verdict, topic.severity.value) == (Verdict.KEPT, "warning")
    assert f"Its windows were tumbling, 1 hour and are {phrase}" in topic.why


def test_other_files_do_not_hide_another_input() -> None:
    (counts,) = of_one(_WINDOWED, _WINDOWED.replace("1h", "2h").replace("stream: in", "stream: other")).topics

    assert "files on local disks have another layout" in counts.why
    assert "Its input was in and is other: old and new results mix." in counts.why
    assert "Its windows were" in counts.why
