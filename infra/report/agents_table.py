"""The agents and their applications as tables: for the terminal, live or once."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from infra.report.agents import Client, SeenApplication, applications
from infra.report.printable import printable

_STYLES = {
    "refused": "bold red",
    "stopped": "bold red",
    "given-up": "bold red",
    "waiting": "yellow",
    "expanding": "cyan",
    "settling": "cyan",
    "steady": "green",
}
_MOST_TOPICS = 10


def agents_rich(clients: Sequence[Client]) -> RenderableType:
    """Return the tables of clients and applications, and under them what asks for attention."""
    seen = applications(clients)
    parts: list[RenderableType] = [_clients(clients)]
    if seen:
        parts += [Text(), _applications(seen)]
    if notes := tuple(_notes(clients, seen)):
        parts += [Text(), *notes]
    return Group(*parts)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _clients(clients: Sequence[Client]) -> Table:
    table = _table("CLIENT", "HOST", "ROLE", "READY", "FAILURES", "READ AT")
    for client in clients:
        status, agent = client.status, client.agent
        if status is None:
            table.add_row(_plain(client.url), "", "", Text("no", "red"), "", "")
            continue
        role = Text("leader", "bold") if client.is_leader else Text("standby" if agent else "")
        ready = Text("no", "red") if client.trouble else Text("yes", "green")
        failures = Text(str(agent.get("failures", "")))
        read_at = _plain(agent.get("readAt") or "")
        table.add_row(
            _plain(status.get("clientId")), _plain(status.get("host")), role, ready, failures, read_at
        )
    return table


def _applications(seen: Sequence[SeenApplication]) -> Table:
    table = _table("APPLICATION", "PHASE", "AUTOSCALING", "SUB-TOPOLOGY", "CURRENT", "EXPECTED")
    for column in table.columns[3:]:
        column.justify = "right"
    for application in seen:
        head = (
            _plain(application.id),
            Text(application.phase, _STYLES.get(application.phase, "")),
            Text("on" if application.autoscaling else "off"),
        )
        for part in application.parallelism or (None,):
            if part is None:
                table.add_row(*head)
                continue
            behind = "yellow" if part.current < part.expected else ""
            table.add_row(
                *head, str(part.subtopology), Text(str(part.current), behind), Text(str(part.expected))
            )
            head = (Text(), Text(), Text())
    return table


def _notes(clients: Sequence[Client], seen: Sequence[SeenApplication]) -> Iterator[Text]:
    for client in clients:
        name = client.url if client.status is None else str(client.status.get("clientId"))
        if client.trouble:
            yield _note(name, client.trouble, "red")
        if trouble := client.agent.get("electionTrouble"):
            yield _note(name, f"cannot stand for election: {trouble}", "red")
    answered = [client for client in clients if client.agent]
    if answered and not any(client.is_leader for client in answered):
        yield _note("no leader", "none of these agents leads; nothing is expanded by them", "yellow")
    for application in seen:
        yield from _about(application)


def _about(application: SeenApplication) -> Iterator[Text]:
    expansion = application.expansion
    if expansion and expansion.get("failingForMs") is not None:
        told = f"attempt {expansion['attempts']}, failing for {expansion['failingForMs'] / 1_000:.0f} s"
        yield _note(application.id, told, "yellow")
    for lack in application.missing[:_MOST_TOPICS]:
        yield _note(
            application.id, f"{lack['topic']} has {lack['partitions']} of {lack['wanted']} partitions", ""
        )
    if (more := len(application.missing) - _MOST_TOPICS) > 0:
        yield _note(application.id, f"and {more} topics more", "")
    for problem in application.problems:
        yield _note(
            application.id, f"{problem['code']}: {problem['summary']} {problem.get('fix') or ''}", "red"
        )


def _note(about: str, told: str, style: str) -> Text:
    return Text.assemble((printable(about), "bold"), ": ", (printable(told.rstrip()), style))


def _plain(value: Any) -> Text:  # noqa: ANN401 - whatever a client tells
    return Text(printable(str(value or "")))
