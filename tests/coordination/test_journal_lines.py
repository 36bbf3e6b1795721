"""The lines of the journal: readable by other programs, and closed to replaced leaders."""

import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.kafka.journal_lines import (
    JournalLine,
    decode_line,
    encode_line,
    key_of,
    latest_entries,
    valid_lines,
)
from headwater.model.expansions import ExpansionEntry, Stage
from headwater.model.untrusted import LARGEST_VALUE
from tests.coordination.leader_process import entry

_NAMES = st.text(min_size=1, max_size=12)
_COUNTS = st.dictionaries(_NAMES, st.integers(1, 10_000), max_size=3)
_ENTRIES = st.builds(
    ExpansionEntry,
    application=_NAMES,
    number=st.integers(1, 1_000),
    stage=st.sampled_from(Stage),
    wall_ms=st.integers(0, 4_000_000_000_000),
    client_id=_NAMES,
    before=_COUNTS,
    after=_COUNTS,
    sources_before=_COUNTS,
    sources_after=_COUNTS,
    done=st.lists(_NAMES, max_size=3).map(tuple),
    reason=st.text(max_size=20),
)


@given(_ENTRIES, st.integers(1, 2_000_000_000))
def test_written_entries_are_read(written: ExpansionEntry, term: int) -> None:
    line = JournalLine.from_entry(written, term, "a-host")
    assert decode_line(encode_line(line)) == line
    assert line.entry() == written


def test_journal_line_is_readable_json() -> None:
    assert json.loads(encode_line(JournalLine.from_entry(entry("agent-1", Stage.EXPANDED), 7, "host-1"))) == {
        "version": 1,
        "term": 7,
        "at": "2026-09-21T14:13:20.123Z",
        "clientId": "agent-1",
        "host": "host-1",
        "application": "orders-app",
        "number": 1,
        "stage": "expanded",
        "before": {"orders-app-counts-changelog": 3},
        "after": {"orders-app-counts-changelog": 6},
        "sourcesBefore": {"orders": 3},
        "sourcesAfter": {"orders": 6},
        "done": ["orders-app-counts-changelog"],
        "reason": "orders has 6 partitions",
    }


def test_unknown_fields_and_stages_are_ignored() -> None:
    document = json.loads(encode_line(JournalLine.from_entry(entry("agent-1", Stage.STARTED), 7, "host-1")))
    later = decode_line(json.dumps({**document, "version": 9, "approvedBy": {"name": "x"}}).encode())
    assert later is not None
    assert later.entry() == entry("agent-1", Stage.STARTED)
    unknown = decode_line(json.dumps({**document, "stage": "approved"}).encode())
    assert unknown is not None
    assert unknown.stage == "approved"
    assert unknown.entry() is None
    assert latest_entries([later, unknown]) == {"orders-app": entry("agent-1", Stage.STARTED)}


@pytest.mark.parametrize(
    "value",
    [
        *(None, b"", b"x", b"[]", b"{}", b'{"term": 1}', b'{"term":1,"at":"soon"}'),
        pytest.param(b"[" * 100_000, id="deeply nested"),
        *(
            pytest.param(b'{"version": 1, %s}' % fields, id=fields.decode()[:60])
            for fields in (
                b'"term": 9223372036854775808, "at": "2026-09-21T14:13:20Z"',
                b'"term": -1, "at": "2026-09-21T14:13:20Z"',
                b'"term": true, "at": "2026-09-21T14:13:20Z"',
                b'"term": 1, "at": "2026-09-21T14:13:20Z", "after": {"a": 99999999999}',
                b'"term": 1, "at": "2026-09-21T14:13:20Z", "after": [["a", 1]]',
                b'"term": 1, "at": "2026-09-21T14:13:20Z", "done": "a topic"',
                b'"term": 1, "at": "2026-09-21T14:13:20Z", "done": [{}]',
                b'"term": 1, "at": "2026-09-21T14:13:20Z", "host": ["a"]',
                b'"term": 1, "at": 1758464000',
                b'"term": 1e999, "at": "2026-09-21T14:13:20Z"',
                b'"term": 1, "at": "0001-01-01T00:00:00+23:59"',
                b'"term": 1, "at": "2026-09-21T14:13:20Z", "application": "\\ud800"',
                b'"term": 1, "at": "2026-09-21T14:13:20Z", "reason": "%s"' % (b"x" * 200_000),
            )
        ),
        b'{"term": 1, "at": "2026-09-21T14:13:20Z"}',
        pytest.param(
            b" " * LARGEST_VALUE + b'{"version":1,"term":1,"at":"2026-09-21T14:13:20Z"}', id="large"
        ),
    ],
)
def test_records_of_other_formats_are_skipped(value: bytes | None) -> None:
    assert decode_line(value) is None


def test_late_lines_of_replaced_leader_are_ignored() -> None:
    begun, late, new = _line(5, Stage.STARTED), _line(5, Stage.EXPANDED), _line(6, Stage.CANCELLED)
    beginning = attrs.evolve(begun, term=6, application="", number=0, stage="")
    assert list(valid_lines([begun, beginning, late, new])) == [begun, new]
    assert list(valid_lines([begun, late, beginning, new])) == [begun, late, new]


def test_a_line_of_a_later_term_than_the_leaders_is_ignored() -> None:
    """Otherwise a forged line would hide the lines of all leaders after it."""
    begun, new = _line(5, Stage.STARTED), _line(6, Stage.CANCELLED)
    forged = attrs.evolve(begun, term=1_000_000, number=99)
    assert latest_entries([begun, forged, new], 6) == latest_entries([begun, new], 6)


def test_line_written_twice_counts_once() -> None:
    line = _line(5, Stage.STARTED)
    assert list(valid_lines([line, line])) == [line]
    assert key_of(line, "a") != key_of(line, "b")


def test_expansion_that_continued_after_it_was_expanded_counts_with_its_last_counts() -> None:
    first = entry("a", Stage.EXPANDED)
    second = attrs.evolve(
        first, wall_ms=first.wall_ms + 5_000, after={"orders-app-counts-changelog": 12}, done=("x",)
    )
    lines = [JournalLine.from_entry(each, 5, "h") for each in (first, second, second)]
    assert list(valid_lines(lines)) == lines[:2]
    assert latest_entries(lines)["orders-app"] == second


def test_new_leader_resumes_from_last_stage_of_last_expansion() -> None:
    lines = [
        JournalLine.from_entry(entry("a", stage, number), 5, "h")
        for number, stage in [
            (1, Stage.NOTIFIED),
            (2, Stage.EXPANDED),
            (2, Stage.STARTED),
            (1, Stage.STARTED),
        ]
    ]
    assert latest_entries(lines)["orders-app"] == entry("a", Stage.EXPANDED, 2)


def _line(term: int, stage: Stage) -> JournalLine:
    return JournalLine.from_entry(entry("agent", stage), term, "host")
