"""What the loop observed: results of actions, time, and leadership."""

from collections.abc import Mapping

import attrs

from headwater.agent.state import ExpansionEntry, TopicCounts, TopicResult
from headwater.model.problems import Problem
from headwater.model.topology import TopologyDocument


@attrs.frozen
class Tick:
    """Time has passed; `read_now`: a user or a changed document requires a read of the cluster."""

    read_now: bool = False


@attrs.frozen
class Metadata:
    """The partition counts of all topics of the cluster, and the current documents."""

    counts: TopicCounts
    documents: tuple[TopologyDocument, ...]


@attrs.frozen
class ProcessorsRead:
    """The committed number of processors of an application; None: none is, or it could not be read."""

    application: str
    number: int | None
    problems: tuple[Problem, ...] = ()
    """Why it could not be read."""


@attrs.frozen
class Unreadable:
    """The metadata could not be read."""

    problems: tuple[Problem, ...]


@attrs.frozen
class TermObserved:
    """This agent leads in `term`; None: it does not lead."""

    term: int | None


@attrs.frozen
class Deposed:
    """The journal contains a newer term."""


@attrs.frozen
class Unconfirmed:
    """The cluster did not confirm the leadership, so the callback was not called."""

    application: str


@attrs.frozen
class Recovered:
    """The journal was read: application id → its last entry."""

    entries: Mapping[str, ExpansionEntry]


@attrs.frozen
class Written:
    """The entries are in the journal."""

    entries: tuple[ExpansionEntry, ...]


@attrs.frozen
class NotWritten:
    """The journal could not be written or read."""

    problems: tuple[Problem, ...]


@attrs.frozen
class Attempted:
    """The result for each topic of an `Expand`."""

    results: tuple[TopicResult, ...]


@attrs.frozen
class CallbackCalled:
    """The callback was called; `error` is the text of its exception, empty if it raised none."""

    application: str
    error: str = ""


Observation = (
    Tick
    | Metadata
    | ProcessorsRead
    | Unreadable
    | TermObserved
    | Deposed
    | Unconfirmed
    | Recovered
    | Written
    | NotWritten
    | Attempted
    | CallbackCalled
)
