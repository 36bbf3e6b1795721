"""Several clients seen as one: what each tells of itself (agent-status.v1), and every application once.

Over the clients the maximum of the parallelism is taken, as KIP-878 tells users to: only the leader sees all
expansions. What else there is to say of an application, the leader says, or any client if none leads.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs


@attrs.frozen
class Client:
    """One endpoint: its status, or why there is none."""

    url: str
    status: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def agent(self) -> Mapping[str, Any]:
        """What it tells of its agent; empty without one."""
        agent: Mapping[str, Any] = (self.status or {}).get("agent") or {}
        return agent

    @property
    def is_leader(self) -> bool:
        return bool(self.agent.get("leader"))

    @property
    def trouble(self) -> str:
        """Why it cannot do its work; empty when it can."""
        if self.status is None:
            return self.error
        ready = self.status.get("ready") or {}
        return "" if ready.get("ok") else str(ready.get("reason") or "not ready")


@attrs.frozen
class Parallelism:
    subtopology: int
    current: int
    expected: int


@attrs.frozen(kw_only=True)
class SeenApplication:
    """One application over all clients."""

    id: str
    phase: str
    autoscaling: bool
    parallelism: tuple[Parallelism, ...]
    missing: tuple[Mapping[str, Any], ...] = ()
    expansion: Mapping[str, Any] | None = None
    problems: tuple[Mapping[str, Any], ...] = ()


def applications(clients: Iterable[Client]) -> tuple[SeenApplication, ...]:
    """Return the applications of all clients, each once, by id."""
    told: dict[str, list[Mapping[str, Any]]] = {}
    for client in sorted(clients, key=lambda client: not client.is_leader):
        for application in client.agent.get("applications") or ():
            told.setdefault(str(application["id"]), []).append(application)
    return tuple(_merged(id_, told[id_]) for id_ in sorted(told))


def agents_json(clients: Sequence[Client]) -> dict[str, Any]:
    """Return what `headwater agent status --format json` prints."""
    return {
        "version": 1,
        "clients": [
            {"url": client.url, "status": client.status, "error": client.error or None} for client in clients
        ],
        "applications": [attrs.asdict(application) for application in applications(clients)],
    }


def _merged(id_: str, told: Sequence[Mapping[str, Any]]) -> SeenApplication:
    """`told` begins with what the leader tells, if there is one."""
    parts: dict[int, Parallelism] = {}
    for application in told:
        for part in application.get("subtopologies") or ():
            number, current, expected = part["id"], part["current"], part["expected"]
            if known := parts.get(number):
                current, expected = max(current, known.current), max(expected, known.expected)
            parts[number] = Parallelism(number, current, expected)
    first = told[0]
    return SeenApplication(
        id=id_,
        phase=str(first.get("phase", "")),
        autoscaling=bool(first.get("autoscaling")),
        parallelism=tuple(parts[number] for number in sorted(parts)),
        missing=tuple(first.get("missing") or ()),
        expansion=first.get("expansion"),
        problems=tuple(first.get("problems") or ()),
    )
