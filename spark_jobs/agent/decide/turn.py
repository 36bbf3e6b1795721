"""What a decision is in the making of: the state so far, and what is to be told."""

import attrs

from spark_jobs.agent.decide.expansions import Change, Context
from spark_jobs.agent.events import AgentEvent
from spark_jobs.agent.state import AgentState


@attrs.frozen
class Turn:
    """Each step returns another one; nothing is told or done before the decision is whole."""

    state: AgentState
    context: Context
    events: tuple[AgentEvent, ...] = ()

    def to(self, state: AgentState, *events: AgentEvent) -> "Turn":
        return attrs.evolve(self, state=state, events=(*self.events, *events))

    def change(self, *changes: Change) -> "Turn":
        """Put changed applications in place; what the journal is to know queues up."""
        applications = dict(self.state.applications)
        applications |= {change.application.id: change.application for change in changes}
        entries = [entry for change in changes for entry in change.entries]
        outbox = (*self.state.outbox, *entries) if self.state.is_leader else ()
        return self.to(
            attrs.evolve(self.state, applications=applications, outbox=outbox),
            *(event for change in changes for event in change.events),
        )
