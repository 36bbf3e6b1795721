"""What the loop comes back with."""

from collections.abc import Mapping

import attrs

from infra.model.problems import Problem
from infra.model.topology import TopologyDocument
from spark_jobs.agent.state import ExpansionEntry, TopicCounts, TopicResult


@attrs.frozen
class Tick:
    """Time has passed, or somebody asked for a look (`look_now`)."""

    look_now: bool = False


@attrs.frozen
class Metadata:
    """`counts` of all topics of the cluster, and the documents as they are now."""

    counts: TopicCounts
    documents: tuple[TopologyDocument, ...]


@attrs.frozen
class Unreadable:
    """The metadata could not be read."""

    problems: tuple[Problem, ...]


@attrs.frozen
class Led:
    """This agent leads in `term`; None: it does not."""

    term: int | None


@attrs.frozen
class Deposed:
    """The journal knows a newer term."""


@attrs.frozen
class Unconfirmed:
    """The cluster did not confirm the leadership, so that the callback was not called."""

    application: str


@attrs.frozen
class Recovered:
    """The journal: application id → its last entry."""

    entries: Mapping[str, ExpansionEntry]


@attrs.frozen
class Written:
    """The entries that were asked for stand in the journal."""

    entries: tuple[ExpansionEntry, ...]


@attrs.frozen
class NotWritten:
    """The journal could not be written or read."""

    problems: tuple[Problem, ...]


@attrs.frozen
class Attempted:
    """The result for each topic that was to be expanded."""

    results: tuple[TopicResult, ...]


@attrs.frozen
class Called:
    """The callback was called; `error` is what it raised, if it did."""

    application: str
    error: str = ""


Observation = (
    Tick
    | Metadata
    | Unreadable
    | Led
    | Deposed
    | Unconfirmed
    | Recovered
    | Written
    | NotWritten
    | Attempted
    | Called
)
