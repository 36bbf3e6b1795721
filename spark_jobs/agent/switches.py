"""`partition.autoscaling.enabled`, switched while the agent runs.

A switch says what the document then says: all else follows from documents that changed. It holds until the
document's own setting changes, or the process ends (as the number of stream threads does in KIP-663).
"""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from threading import Lock
from typing import Any

import attrs

from infra.model.topology import TopologyDocument
from spark_jobs.agent.events import AgentEvent
from spark_jobs.agent.ports import Documents
from spark_jobs.control import Refused, Route

ENABLED = "partition.autoscaling.enabled"


@attrs.frozen
class _Switch:
    enabled: bool
    instead_of: str | None
    """What the document said when it was switched."""


class SwitchedDocuments:
    """The documents, with the switches in their settings (`ports.Documents`). Switched by any thread."""

    def __init__(self, inner: Documents) -> None:
        self._inner = inner
        self._lock = Lock()
        self._switches: dict[str, _Switch] = {}
        self._given: tuple[tuple[TopologyDocument, ...], tuple[TopologyDocument, ...]] | None = None

    def current(self) -> tuple[TopologyDocument, ...]:
        """See `ports.Documents.current`."""
        documents = self._inner.current()
        with self._lock:
            if self._given is None or self._given[0] is not documents:
                self._given = documents, self._applied(documents)
            return self._given[1]

    def refresh(self) -> Sequence[AgentEvent]:
        """See `ports.Documents.refresh`."""
        return self._inner.refresh()

    def switch(self, *, enabled: bool, application: str | None = None) -> tuple[str, ...]:
        """Switch one application, or all; return their ids. Raises `Refused` for an id that is unknown."""
        own = {document.application.id: document for document in self._inner.current()}
        ids = tuple(sorted(own)) if application is None else (application,)
        if application is not None and application not in own:
            there = ", ".join(sorted(own)) or "none"
            raise Refused(
                f"This agent serves no application {application!r}; there is {there}.", HTTPStatus.NOT_FOUND
            )
        with self._lock:
            for id_ in ids:
                self._switches[id_] = _Switch(enabled, own[id_].application.config.get(ENABLED))
            self._given = None
        return ids

    def route(self, wake: Callable[[], None]) -> Route:
        """Return `POST /control/autoscaling`; `wake` has the loop look at the documents at once."""

        def handle(body: Mapping[str, Any]) -> Mapping[str, Any]:
            enabled, application = body.get("enabled"), body.get("application")
            if (
                set(body) - {"enabled", "application"}
                or not isinstance(enabled, bool)
                or not isinstance(application, str | None)
            ):
                raise Refused('Send {"enabled": true or false, "application": an id, or nothing for all}.')
            switched = self.switch(enabled=enabled, application=application)
            wake()
            return {"applications": dict.fromkeys(switched, enabled)}

        return Route("/control/autoscaling", handle)

    def _applied(self, documents: tuple[TopologyDocument, ...]) -> tuple[TopologyDocument, ...]:
        self._switches = {
            document.application.id: switch
            for document in documents
            if (switch := self._switches.get(document.application.id)) is not None
            and document.application.config.get(ENABLED) == switch.instead_of
        }
        if not self._switches:
            return documents
        return tuple(_switched(document, self._switches) for document in documents)


def _switched(document: TopologyDocument, switches: Mapping[str, _Switch]) -> TopologyDocument:
    application = document.application
    switch = switches.get(application.id)
    if switch is None:
        return document
    config = {**application.config, ENABLED: "true" if switch.enabled else "false"}
    return attrs.evolve(document, application=attrs.evolve(application, config=config))
