"""How agents that share a name share their work: one leads, and what it did is recorded."""

from typing import Self

import attrs

from infra.observe import Connection
from spark_jobs.agent.coordination_topic import coordination_topic
from spark_jobs.agent.history import KafkaJournal
from spark_jobs.agent.leadership import DEFAULT_SESSION_TIMEOUT_MS, KafkaLeadership

__all__ = ["DEFAULT_SESSION_TIMEOUT_MS", "Coordination", "coordination_topic"]


@attrs.frozen
class Coordination:
    """One agent's leadership and journal; a context manager. Agents of one `name` are one group."""

    leadership: KafkaLeadership
    journal: KafkaJournal

    @classmethod
    def of(
        cls,
        connection: Connection,
        name: str,
        client_id: str,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
    ) -> "Coordination":
        topic = coordination_topic(name)
        leadership = KafkaLeadership(connection, topic, client_id, session_timeout_ms)
        return cls(leadership, KafkaJournal(connection, topic, client_id, leadership.standing))

    def close(self) -> None:
        self.leadership.close()
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
