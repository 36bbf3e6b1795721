"""When a leader commits its term again, and when it stops being the leader because no broker answers."""

import attrs

_PER_SESSION = 3


@attrs.define
class Renewal:
    """Times are seconds of a monotonic clock. `commit` is the commit without an answer, None: there is none.

    Only an unanswered commit ends the leadership, not the time since the last answer: the loop may execute an
    action for longer than a session, while heartbeats continue and an answer waits to be read.
    """

    session_seconds: float
    commit: str | None = None
    _answered_at: float = 0.0
    _sent_at: float = 0.0
    _unanswered_since: float | None = None

    def is_due(self, now: float) -> bool:
        """Return whether to send a commit; one that stays without an answer is sent again after a session."""
        pause = self.session_seconds if self.commit is not None else self.session_seconds / _PER_SESSION
        return now >= max(self._answered_at, self._sent_at) + pause

    def is_overdue(self, now: float) -> bool:
        """Return whether a commit has had no answer for a session timeout."""
        return self._unanswered_since is not None and now - self._unanswered_since > self.session_seconds

    def sent(self, commit: str, now: float) -> None:
        self.commit, self._sent_at = commit, now
        if self._unanswered_since is None:
            self._unanswered_since = now

    def answered(self, now: float) -> None:
        """A broker has accepted a commit of the term."""
        self.commit, self._answered_at, self._unanswered_since = None, now, None

    def failed(self) -> None:
        """A broker, or the client after a timeout, has refused the commit."""
        self.commit = None
