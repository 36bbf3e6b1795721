"""Agents of one group, as objects in this process; `subject` holds those that are to be paused or killed."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from infra.observe import Connection
from spark_jobs.agent.run import Coordination

SESSION_MS = 6_000  # the default minimum of brokers
_LONGEST_POLL_SECONDS = 1.0  # polls take microseconds, but a busy machine may have other work meanwhile


class Group:
    """Coordinations of one name on one broker, ended with the test."""

    def __init__(self, name: str, bootstrap_servers: str) -> None:
        self.name = name
        self.connection = Connection(bootstrap_servers=(bootstrap_servers,))
        self._stack = ExitStack()
        self._longest_poll = 0.0

    def join(self, client_id: str, session_ms: int = SESSION_MS) -> Coordination:
        return self._stack.enter_context(Coordination.of(self.connection, self.name, client_id, session_ms))

    def terms(self, members: Sequence[Coordination]) -> list[int | None]:
        """Poll all members once."""
        return [self._poll(member) for member in members]

    def leader(self, members: Sequence[Coordination], seconds: float = 40) -> tuple[Coordination, int]:
        """Return the one that leads and its term; fails when two do, or none in time."""
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
            f"nobody leads after {seconds} s: {[member.leadership.error for member in members]}"
        )

    @property
    def has_waited(self) -> bool:
        """Whether a poll took as long as the shortest time-out of a request would."""
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
    """Make a group on the broker of that address."""
    groups: list[Group] = []

    def make(bootstrap_servers: str) -> Group:
        groups.append(Group(unique("agents"), bootstrap_servers))
        return groups[-1]

    yield make
    for made in groups:
        made.close()
