"""What follows from an observation: the next state, the events to report, and one action.

`decide` is a pure function. Clock, random numbers, journal and cluster are passed in as values. The loop
executes the `Action` and passes its result as the next observation, until nothing is due before `wake_ms`.
"""

from headwater.agent.decide.decision import Decision, decide
from headwater.agent.decide.values import (
    Action,
    AgentPolicy,
    Attempted,
    CallbackCalled,
    Deposed,
    Expand,
    Metadata,
    Moment,
    Notify,
    NotWritten,
    Observation,
    Observe,
    OffsetMetadataRead,
    ReadOffsetMetadata,
    Record,
    Recover,
    Recovered,
    TermObserved,
    Tick,
    Unconfirmed,
    Unreadable,
    Written,
)

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
    "OffsetMetadataRead",
    "ReadOffsetMetadata",
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
