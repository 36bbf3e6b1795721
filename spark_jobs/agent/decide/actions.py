"""What the loop may be asked to do, one thing at a time."""

import attrs

from spark_jobs.agent.state import ExpansionEntry, Shortfall


@attrs.frozen
class Observe:
    """Read the metadata: `Metadata` or `Unreadable`."""


@attrs.frozen
class Recover:
    """Read the journal: `Recovered`, `NotWritten` or `Deposed`."""


@attrs.frozen
class Record:
    """Append to the journal, in this order: `Written`, `NotWritten` or `Deposed`."""

    entries: tuple[ExpansionEntry, ...]


@attrs.frozen
class Expand:
    """Expand wave after wave, validated first: `Attempted`."""

    waves: tuple[tuple[Shortfall, ...], ...]


@attrs.frozen
class Notify:
    """Call the callback: `Called` or `Unconfirmed`."""

    application: str
    old: int
    new: int


Action = Observe | Recover | Record | Expand | Notify
