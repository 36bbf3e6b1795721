"""PURE. What follows from an observation: the next state, what is to be told, and one thing to do.

`decide` is the whole of it. Clock, chance, journal and cluster come in as values; the loop does the `Action`
and comes back with its result as the next observation, until there is nothing to do before `wake_ms`.
"""

from spark_jobs.agent.decide.actions import Action, Expand, Notify, Observe, Record, Recover
from spark_jobs.agent.decide.clock import Moment
from spark_jobs.agent.decide.decision import Decision, decide
from spark_jobs.agent.decide.observations import (
    Attempted,
    Called,
    Deposed,
    Led,
    Metadata,
    NotWritten,
    Observation,
    Recovered,
    Tick,
    Unconfirmed,
    Unreadable,
    Written,
)
from spark_jobs.agent.decide.policy import AgentPolicy

__all__ = [
    "Action",
    "AgentPolicy",
    "Attempted",
    "Called",
    "Decision",
    "Deposed",
    "Expand",
    "Led",
    "Metadata",
    "Moment",
    "NotWritten",
    "Notify",
    "Observation",
    "Observe",
    "Record",
    "Recover",
    "Recovered",
    "Tick",
    "Unconfirmed",
    "Unreadable",
    "Written",
    "decide",
]
