"""A decision while it is being made: the state so far, and the events to report."""

import attrs

from headwater.agent.decide.expansions import Change, Context
from headwater.agent.events import AgentEvent
from headwater.agent.state import AgentState


@attrs.frozen
class PendingDecision:
    """Each step returns a new one. Nothing is reported or executed before the decision is complete."""

    state: AgentState
    context: Context
    events: tuple[AgentEvent, ...] = ()

    def with_state(self, state: AgentState, *events: AgentEvent) -> "PendingDecision":
        return attrs.evolve(self, state=state, events=(*self.events, *events))

    def with_changes(self, *changes: Change) -> "PendingDecision":
        """Return the decision with changed applications; journal entries are queued if this agent leads."""
        applications = dict(self.state.applications)
        applications |= {change.application.id: change.application for change in changes}
        entries = [entry for change in changes for entry in change.entries]
        outbox = (*self.state.outbox, *entries) if self.state.is_leader else ()
        return self.with_state(
            attrs.evolve(self.state, applications=applications, outbox=outbox),
            *(event for change in changes for event in change.events),
        )
