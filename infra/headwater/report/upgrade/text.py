"""An upgrade as text for a terminal."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from headwater.planner.upgrade import ApplicationUpgrade, Change, Upgrade
from headwater.report.escaping import printable
from headwater.report.problems import entry_rich, problems_rich
from headwater.report.upgrade.summary import application_summary, groups, remarks, restart, summary


def upgrade_text(upgrade: Upgrade) -> str:
    """Return the upgrade as plain lines."""
    return upgrade_rich(upgrade).plain


def upgrade_rich(upgrade: Upgrade) -> Text:
    """Return the lines of `upgrade_text` with colors for a terminal."""
    parts = [Text(summary(upgrade), "bold"), *map(Text, remarks(upgrade))]
    for application in upgrade.applications:
        parts += _application(application)
    if upgrade.problems:
        parts.append(problems_rich(upgrade.problems))
    return Text("\n\n").join(parts)


def _application(part: ApplicationUpgrade) -> Iterator[Text]:
    lines = [
        f"  {restart(part)}",
        *(f"  Note: {note}" for note in part.notes),
        *(f"  Data: {note.text}" for note in part.data),
    ]
    yield Text.assemble(
        (printable(part.id), "bold underline"), f"  {application_summary(part)}", "\n" + "\n".join(lines)
    )
    for change, *others in groups(part.changes):
        yield entry_rich(change.severity, change.kind, change.what, tuple(_details(change, others)))


def _details(change: Change, others: Sequence[Change]) -> Iterator[tuple[str, str]]:
    if others:
        yield "also", ", ".join(str(other.topic) for other in others)
    if change.location is not None:
        yield "at", str(change.location)
    yield from (("before", change.before), ("after", change.after), ("why", change.why))
    yield "first", change.first
