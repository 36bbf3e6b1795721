"""Run an agent on a real broker, in a thread of the test, with recording instruments."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread

import attrs

from headwater.agent.events import AgentEvent
from headwater.agent.run import Agent, AgentSettings
from headwater.agent.state import AgentState, Phase
from headwater.kafka import Connection
from headwater.model.topology import TopologyDocument
from headwater.toolchain.broker.readiness import until
from tests.agent.simulation import set_up
from tests.pulumi.cluster import Cluster

SECONDS = 60


@attrs.define
class Recorder:
    """Instruments that record states, events and requests."""

    state: AgentState = attrs.field(factory=AgentState)
    events: list[AgentEvent] = attrs.field(factory=list)
    requests: list[tuple[str, bool]] = attrs.field(factory=list)

    def record_state(self, state: AgentState) -> None:
        self.state = state

    def record_event(self, event: AgentEvent) -> None:
        self.events.append(event)

    def record_request(self, operation: str, seconds: float, *, succeeded: bool) -> None:
        assert seconds >= 0
        self.requests.append((operation, succeeded))

    def of(self, kind: type) -> list[AgentEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    def phase(self, application: str) -> Phase | None:
        app = self.state.applications.get(application)
        return app.phase if app else None


@attrs.define
class InMemory:
    """Documents in memory, which a test can change."""

    documents: tuple[TopologyDocument, ...]

    def current(self) -> tuple[TopologyDocument, ...]:
        return self.documents

    def refresh(self) -> Sequence[AgentEvent]:
        return ()


def settings(
    servers: str,
    documents: tuple[TopologyDocument, ...],
    group: str,
    *,
    client_id: str = "agent-1",
    callback: str | None = None,
    connection: Connection | None = None,
    request_timeout_ms: int = 20_000,
) -> AgentSettings:
    """Return the settings of an agent with short intervals.

    Requests time out soon only where a test needs it: a busy machine may take seconds to answer.
    """
    return AgentSettings(
        connection=connection or Connection(bootstrap_servers=(servers,)),
        documents=InMemory(documents),
        client_id=client_id,
        group=group,
        metadata_max_age_ms=500,
        settle_ms=500,
        request_timeout_ms=request_timeout_ms,
        callback=callback,
    )


@contextmanager
def running(settings: AgentSettings) -> Iterator[Recorder]:
    """Run an agent until the end of the `with` block."""
    recorder = Recorder()
    agent = Agent(settings, recorder)
    thread = Thread(target=agent.run, daemon=True)
    thread.start()
    try:
        yield recorder
    finally:
        agent.stop()
        thread.join(SECONDS)
    assert not thread.is_alive(), "the agent does not end"


def make_topics(cluster: Cluster, documents: tuple[TopologyDocument, ...], sources: dict[str, int]) -> None:
    """Create source, internal and sink topics as the first setup does."""
    for name, partitions in set_up(documents, sources).items():
        cluster.create(name, partitions)


def await_true(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    assert until(condition, seconds), condition


def await_counts(
    cluster: Cluster,
    documents: tuple[TopologyDocument, ...],
    sources: dict[str, int],
    seconds: float = SECONDS,
) -> None:
    """Wait until all topics have the counts that `sources` require."""
    expected = set_up(documents, sources)
    until(lambda: {name: cluster.partitions(name) for name in expected} == expected, seconds)
    assert {name: cluster.partitions(name) for name in expected} == expected
