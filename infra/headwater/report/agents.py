"""The status of several agents as tables and as JSON: each client, and every application once.

The parallelism of an application is the maximum over the clients, as KIP-878 advises: only the leader sees
all expansions. Everything else about an application is taken from the leader's status, or from
any client if there is no leader. The status of one client follows `agent-status.v1`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headwater.planner.phrases import counted, lines_of_problems, seconds_phrase, summary_phrase
from headwater.report.markdown import printable

_STYLES = {
    "refused": "bold red",
    "stopped": "bold red",
    "incomplete": "bold red",
    "given-up": "bold red",
    "waiting": "yellow",
    "expanding": "cyan",
    "settling": "cyan",
    "steady": "green",
}
_MOST_TOPICS = 10


@attrs.frozen
class Client:
    """One endpoint: its status, or the error that kept it from answering."""

    url: str
    status: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def agent(self) -> Mapping[str, Any]:
        """The section `agent` of its status; empty if the client is no agent."""
        agent: Mapping[str, Any] = (self.status or {}).get("agent") or {}
        return agent

    @property
    def is_leader(self) -> bool:
        return bool(self.agent.get("leader"))

    @property
    def not_ready_reason(self) -> str:
        """Why the client is not ready; empty if it is."""
        if self.status is None:
            return self.error
        ready = self.status.get("ready") or {}
        return "" if ready.get("ok") else str(ready.get("reason") or "not ready")


@attrs.frozen
class Parallelism:
    """The current and the expected number of tasks of a sub-topology (KIP-878)."""

    subtopology: int
    current: int
    expected: int


@attrs.frozen(kw_only=True)
class ApplicationStatus:
    """The status of one application, merged over all clients."""

    id: str
    phase: str
    autoscaling: bool
    parallelism: tuple[Parallelism, ...]
    missing: tuple[Mapping[str, Any], ...] = ()
    expansion: Mapping[str, Any] | None = None
    problems: tuple[Mapping[str, Any], ...] = ()


def list_applications(clients: Iterable[Client]) -> tuple[ApplicationStatus, ...]:
    """Return the applications of all clients, each once, in the order of their ids."""
    reported: dict[str, list[Mapping[str, Any]]] = {}
    for client in sorted(clients, key=lambda client: not client.is_leader):
        for application in client.agent.get("applications") or ():
            reported.setdefault(str(application["id"]), []).append(application)
    return tuple(_merge_reports(id_, reported[id_]) for id_ in sorted(reported))


def agents_json(clients: Sequence[Client]) -> dict[str, Any]:
    """Return what `headwater agent status --format json` prints."""
    return {
        "version": 1,
        "clients": [
            {"url": client.url, "status": client.status, "error": client.error or None} for client in clients
        ],
        "applications": [attrs.asdict(application) for application in list_applications(clients)],
    }


def agents_rich(clients: Sequence[Client]) -> RenderableType:
    """Return the tables of clients and applications, followed by notes on what needs attention."""
    seen = list_applications(clients)
    parts: list[RenderableType] = [_clients_table(clients)]
    if seen:
        parts += [Text(), _applications_table(seen)]
    if notes := tuple(_note_lines(clients, seen)):
        parts += [Text(), *notes]
    return Group(*parts)


def _merge_reports(id_: str, reported: Sequence[Mapping[str, Any]]) -> ApplicationStatus:
    """Merge the reports of several clients; the leader's comes first."""
    parts: dict[int, Parallelism] = {}
    for application in reported:
        for part in application.get("subtopologies") or ():
            number, current, expected = part["id"], part["current"], part["expected"]
            if known := parts.get(number):
                current, expected = max(current, known.current), max(expected, known.expected)
            parts[number] = Parallelism(number, current, expected)
    first = reported[0]
    return ApplicationStatus(
        id=id_,
        phase=str(first.get("phase", "")),
        autoscaling=bool(first.get("autoscaling")),
        parallelism=tuple(parts[number] for number in sorted(parts)),
        missing=tuple(first.get("missing") or ()),
        expansion=first.get("expansion"),
        problems=tuple(first.get("problems") or ()),
    )


def _new_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _clients_table(clients: Sequence[Client]) -> Table:
    table = _new_table("CLIENT", "HOST", "ROLE", "READY", "FAILURES", "READ AT")
    for client in clients:
        status, agent = client.status, client.agent
        if status is None:
            table.add_row(_cell_text(client.url), "", "", Text("no", "red"), "", "")
            continue
        role = Text("leader", "bold") if client.is_leader else Text("standby" if agent else "")
        ready = Text("no", "red") if client.not_ready_reason else Text("yes", "green")
        failures = Text(str(agent.get("failures", "")))
        read_at = _cell_text(agent.get("readAt") or "")
        table.add_row(
            _cell_text(status.get("clientId")), _cell_text(status.get("host")), role, ready, failures, read_at
        )
    return table


def _applications_table(seen: Sequence[ApplicationStatus]) -> Table:
    table = _new_table("APPLICATION", "PHASE", "AUTOSCALING", "SUB-TOPOLOGY", "CURRENT", "EXPECTED")
    for column in table.columns[3:]:
        column.justify = "right"
    for application in seen:
        head = (
            _cell_text(application.id),
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


def _note_lines(clients: Sequence[Client], seen: Sequence[ApplicationStatus]) -> Iterator[Text]:
    for client in clients:
        name = client.url if client.status is None else str(client.status.get("clientId"))
        problems = client.agent.get("problems") or ()
        if client.not_ready_reason not in {"", *(each["summary"] for each in problems)}:
            yield _note_line(name, client.not_ready_reason, "red")
        for line in _problem_lines(problems):
            yield _note_line(name, line, "red")
        if trouble := client.agent.get("electionTrouble"):
            yield _note_line(name, f"cannot take part in the election: {trouble}", "red")
    answered = [client for client in clients if client.agent]
    if answered and not any(client.is_leader for client in answered):
        yield _note_line("no leader", "none of these agents is the leader, so none expands topics", "yellow")
    for application in seen:
        yield from _application_notes(application)


def _application_notes(application: ApplicationStatus) -> Iterator[Text]:
    expansion = application.expansion
    if expansion and expansion.get("failingForMs") is not None:
        failing_for = seconds_phrase(expansion["failingForMs"] / 1_000)
        text = f"attempt {expansion['attempts']}, failing for {failing_for}"
        yield _note_line(application.id, text, "yellow")
    for topic in application.missing[:_MOST_TOPICS]:
        yield _note_line(
            application.id, f"{topic['topic']} has {topic['partitions']} of {topic['wanted']} partitions", ""
        )
    if (more := len(application.missing) - _MOST_TOPICS) > 0:
        yield _note_line(application.id, f"and {counted(more, 'more topic')}", "")
    for line in _problem_lines(application.problems):
        yield _note_line(application.id, line, "red")


def _problem_lines(problems: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    texts = (
        (
            str(each["code"]),
            f"{each['code']}: {summary_phrase(each['code'], each['summary'], each.get('found'))}",
            each.get("fix") or "",
        )
        for each in problems
    )
    return lines_of_problems(texts, _MOST_TOPICS)


def _note_line(subject: str, text: str, style: str) -> Text:
    return Text.assemble((printable(subject), "bold"), ": ", (printable(text.rstrip()), style))


def _cell_text(value: Any) -> Text:  # noqa: ANN401 - any value of a client's JSON
    return Text(printable(str(value or "")))
