"""What follows from an observation: the next state, the events to report, and one action.

`decide` is a pure function. Clock, random numbers, journal and cluster are passed in as values. The loop
executes the `Action` and passes its result as the next observation, until nothing is due before `wake_ms`.
"""

from headwater.agent.decide.actions import Action, Expand, Notify, Observe, ReadProcessors, Record, Recover
from headwater.agent.decide.clock import Moment
from headwater.agent.decide.decision import Decision, decide
from headwater.agent.decide.observations import (
    Attempted,
    CallbackCalled,
    Deposed,
    Metadata,
    NotWritten,
    Observation,
    ProcessorsRead,
    Recovered,
    TermObserved,
    Tick,
    Unconfirmed,
    Unreadable,
    Written,
)
from headwater.agent.decide.policy import AgentPolicy

__all__ = [
    "Action",
    "AgentPolicy",
    "Attempted",
    "CallbackCalled",
    "Decision",
    "Deposed",
    "Expand",
    "Metadata",
    "Moment",
    "NotWritten",
    "Notify",
    "Observation",
    "Observe",
    "ProcessorsRead",
    "ReadProcessors",
    "Record",
    "Recover",
    "Recovered",
    "TermObserved",
    "Tick",
    "Unconfirmed",
    "Unreadable",
    "Written",
    "decide",
]
