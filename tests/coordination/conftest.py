"""Agents of one group as objects in this process; `leader_process` is for tests that pause or kill one."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from headwater.agent.run import Coordination
from headwater.kafka import Connection

SESSION_MS = 6_000  # the brokers' default minimum
# Polls take microseconds, but longer on a busy machine. Requests time out after five seconds or more.
_LONGEST_POLL_SECONDS = 4.0


class Group:
    """Members of one agent group on one broker, closed at the end of the test."""

    def __init__(self, name: str, bootstrap_servers: str) -> None:
        self.name = name
        self.connection = Connection(bootstrap_servers=(bootstrap_servers,))
        self._stack = ExitStack()
        self._longest_poll = 0.0

    def join(self, client_id: str, session_ms: int = SESSION_MS) -> Coordination:
        return self._stack.enter_context(
            Coordination.create(self.connection, self.name, client_id, session_ms)
        )

    def terms(self, members: Sequence[Coordination]) -> list[int | None]:
        """Poll all members once."""
        return [self._poll(member) for member in members]

    def leader(self, members: Sequence[Coordination], seconds: float = 60) -> tuple[Coordination, int]:
        """Return the leader and its term; fail if two agents lead or no agent leads in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            leading = [
                (member, term) for member, term in zip(members, self.terms(members), strict=True) if term
            ]
            if leading:
                confirmed = [(member, term) for member, term in leading if member.leadership.confirm(term)]
                assert len(confirmed) <= 1
                if confirmed:
                    return confirmed[0]
            time.sleep(0.05)
        raise AssertionError(
            f"no agent leads after {seconds} s: {[member.leadership.error for member in members]}"
        )

    @property
    def has_waited(self) -> bool:
        """Return whether a poll waited for a request that was not answered."""
        return self._longest_poll > _LONGEST_POLL_SECONDS

    def close(self) -> None:
        self._stack.close()

    def _poll(self, member: Coordination) -> int | None:
        begin = time.monotonic()
        term = member.leadership.poll()
        self._longest_poll = max(self._longest_poll, time.monotonic() - begin)
        return term


@pytest.fixture
def group(unique: Callable[[str], str]) -> Iterator[Callable[[str], Group]]:
    """Create groups on the broker with this address."""
    groups: list[Group] = []

    def make(bootstrap_servers: str) -> Group:
        groups.append(Group(unique("agents"), bootstrap_servers))
        return groups[-1]

    yield make
    for group in groups:
        group.close()
