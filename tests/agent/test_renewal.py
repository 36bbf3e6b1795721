"""When a leader renews its term, and when it stops being the leader because no broker answers."""

from headwater.agent.leadership import Renewal


def _renewal() -> Renewal:
    renewal = Renewal(session_seconds=9.0)
    renewal.record_answer(100.0)
    return renewal


def test_term_is_renewed_three_times_per_session() -> None:
    renewal = _renewal()
    assert not renewal.is_due(102.9)
    assert renewal.is_due(103.0)
    renewal.record_commit("a", 103.0)
    assert not renewal.is_due(107.0)
    renewal.record_answer(107.0)
    assert not renewal.is_due(109.9)
    assert renewal.is_due(110.0)


def test_commit_without_answer_for_a_session_ends_the_leadership() -> None:
    renewal = _renewal()
    renewal.record_commit("a", 103.0)
    assert not renewal.is_overdue(112.0)
    assert renewal.is_overdue(112.1)
    renewal.record_answer(113.0)
    assert not renewal.is_overdue(500.0)


def test_failed_commits_are_sent_again_and_count_from_the_first() -> None:
    renewal = _renewal()
    renewal.record_commit("a", 103.0)
    renewal.forget_commit()
    assert renewal.is_due(106.0)
    renewal.record_commit("b", 106.0)
    assert not renewal.is_overdue(112.0)
    assert renewal.is_overdue(112.1)


def test_loop_that_was_busy_for_long_stays_leader() -> None:
    """It sends a commit as soon as it can, and has a session of time for the answer."""
    renewal = _renewal()
    assert not renewal.is_overdue(1_000.0)
    assert renewal.is_due(1_000.0)
    renewal.record_commit("a", 1_000.0)
    assert not renewal.is_overdue(1_001.0)
