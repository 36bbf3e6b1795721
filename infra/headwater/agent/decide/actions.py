"""The actions that the loop executes, one at a time; each docstring names the observations that follow."""

import attrs

from headwater.agent.state import ExpansionEntry, Shortfall, TopicCounts


@attrs.frozen
class Observe:
    """Read the metadata of the cluster: `Metadata` or `Unreadable`."""


@attrs.frozen
class ReadProcessors:
    """Read the committed number of processors of an application from its `inputs`: `ProcessorsRead`."""

    application: str
    inputs: TopicCounts


@attrs.frozen
class Recover:
    """Read the journal: `Recovered`, `NotWritten` or `Deposed`."""


@attrs.frozen
class Record:
    """Append the entries to the journal, in this order: `Written`, `NotWritten` or `Deposed`."""

    entries: tuple[ExpansionEntry, ...]


@attrs.frozen
class Expand:
    """Validate the new counts, then expand wave after wave: `Attempted`."""

    waves: tuple[tuple[Shortfall, ...], ...]


@attrs.frozen
class Notify:
    """Call the callback with the old and the new partition count: `CallbackCalled` or `Unconfirmed`."""

    application: str
    old: int
    new: int


Action = Observe | ReadProcessors | Recover | Record | Expand | Notify
