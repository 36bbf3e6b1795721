"""The topology documents of an agent: files that are read again when they change, and switched settings."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Any

import attrs

from headwater.agent.events import AgentEvent, DocumentsChanged, DocumentsRefused
from headwater.agent.ports import Documents
from headwater.control import Refused, Route
from headwater.model.problems import ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.spec import Documents as LoadedDocuments
from headwater.spec import load_documents
from headwater.spec.files import find_files

ENABLED = "partition.autoscaling.enabled"
Stamps = Mapping[Path, tuple[int, int, int]]
"""File → inode, size in bytes, time of modification in nanoseconds."""


class DocumentFiles:
    """Documents in files, folders and patterns (`ports.Documents`)."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Read the documents; raises `ProblemsError` if one has errors."""
        self._paths = tuple(paths)
        self._stamps = _read_stamps(self._paths)
        loaded = load_documents(self._paths)
        if errors(loaded.problems):
            raise ProblemsError(loaded.problems)
        self.loaded: LoadedDocuments = loaded

    def current(self) -> tuple[TopologyDocument, ...]:
        return self.loaded.documents

    def refresh(self) -> Sequence[AgentEvent]:
        """Read all documents again if a file was added, removed or changed; keep the old ones on errors."""
        stamps = _read_stamps(self._paths)
        if stamps == self._stamps:
            return ()
        self._stamps = stamps
        loaded = load_documents(self._paths)
        if errors(loaded.problems):
            return (DocumentsRefused(loaded.problems),)
        self.loaded = loaded
        return (DocumentsChanged(tuple(document.application.id for document in loaded.documents)),)


@attrs.frozen
class _Switch:
    enabled: bool
    instead_of: str | None
    """The setting of the document when it was switched."""


class SwitchedDocuments:
    """Documents with `partition.autoscaling.enabled` switched while the agent runs (`ports.Documents`).

    A switch holds until the setting of the document changes or the process ends, as the number of stream
    threads does in KIP-663. Any thread may switch.
    """

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
                self._given = documents, self._apply_all(documents)
            return self._given[1]

    def refresh(self) -> Sequence[AgentEvent]:
        """See `ports.Documents.refresh`."""
        return self._inner.refresh()

    def switch(self, *, enabled: bool, application: str | None = None) -> tuple[str, ...]:
        """Switch one application, or all, and return their ids; raises `Refused` for an unknown id."""
        own = {document.application.id: document for document in self._inner.current()}
        ids = tuple(sorted(own)) if application is None else (application,)
        if application is not None and application not in own:
            known = ", ".join(sorted(own)) or "none"
            raise Refused(
                f"This agent has no application {application!r}. Its applications: {known}.",
                HTTPStatus.NOT_FOUND,
            )
        with self._lock:
            for id_ in ids:
                self._switches[id_] = _Switch(enabled, own[id_].application.config.get(ENABLED))
            self._given = None
        return ids

    def route(self, wake: Callable[[], None]) -> Route:
        """Return the route `POST /control/autoscaling`; `wake` makes the loop read the documents at once."""

        def handle(body: Mapping[str, Any]) -> Mapping[str, Any]:
            enabled, application = body.get("enabled"), body.get("application")
            if (
                set(body) - {"enabled", "application"}
                or not isinstance(enabled, bool)
                or not isinstance(application, str | None)
            ):
                raise Refused(
                    'Send {"enabled": true or false, "application": ID}; omit "application" for all.'
                )
            switched = self.switch(enabled=enabled, application=application)
            wake()
            return {"applications": dict.fromkeys(switched, enabled)}

        return Route("/control/autoscaling", handle)

    def _apply_all(self, documents: tuple[TopologyDocument, ...]) -> tuple[TopologyDocument, ...]:
        self._switches = {
            document.application.id: switch
            for document in documents
            if (switch := self._switches.get(document.application.id)) is not None
            and document.application.config.get(ENABLED) == switch.instead_of
        }
        if not self._switches:
            return documents
        return tuple(_apply_switches(document, self._switches) for document in documents)


def _apply_switches(document: TopologyDocument, switches: Mapping[str, _Switch]) -> TopologyDocument:
    application = document.application
    switch = switches.get(application.id)
    if switch is None:
        return document
    config = {**application.config, ENABLED: "true" if switch.enabled else "false"}
    return attrs.evolve(document, application=attrs.evolve(application, config=config))


def _read_stamps(paths: Sequence[Path]) -> Stamps:
    files, _ = find_files(paths)
    return {file: stamp for file in files if (stamp := _read_stamp(file)) is not None}


def _read_stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
