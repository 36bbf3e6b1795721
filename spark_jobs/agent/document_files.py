"""Topology documents in files, read again when they change: a flag may be switched while the agent runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from infra.model.problems import ProblemsError, errors
from infra.model.topology import TopologyDocument
from infra.spec import Documents, load_documents
from infra.spec.files import find
from spark_jobs.agent.events import AgentEvent, DocumentsChanged, DocumentsRefused

Stamps = Mapping[Path, tuple[int, int, int]]


class DocumentFiles:
    """A `ports.Documents`: files, folders and globs, and what documents name beside them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Read once; raises `ProblemsError` when there is an error."""
        self._paths = tuple(paths)
        self._stamps = _stamps(self._paths)
        loaded = load_documents(self._paths)
        if errors(loaded.problems):
            raise ProblemsError(loaded.problems)
        self.loaded: Documents = loaded

    def current(self) -> tuple[TopologyDocument, ...]:
        return self.loaded.documents

    def refresh(self) -> Sequence[AgentEvent]:
        """Read all anew when a file has come, gone or changed; with errors the old ones go on to count."""
        stamps = _stamps(self._paths)
        if stamps == self._stamps:
            return ()
        self._stamps = stamps
        loaded = load_documents(self._paths)
        if errors(loaded.problems):
            return (DocumentsRefused(loaded.problems),)
        self.loaded = loaded
        return (DocumentsChanged(tuple(document.application.id for document in loaded.documents)),)


def _stamps(paths: Sequence[Path]) -> Stamps:
    files, _ = find(paths)
    return {file: stamp for file in files if (stamp := _stamp(file)) is not None}


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
