"""The cluster that a command line names."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication
from infra.model.problems import Problem, ProblemsError, errors
from infra.model.record import SetupRecord
from infra.model.topology import TopologyDocument
from infra.observe import Connection, KafkaClusterReader, snapshot_request
from infra.observe.command_line import connection
from infra.observe.visibility import check_visible

if TYPE_CHECKING:
    from infra.spec import Documents


def opened(
    files: Sequence[Path], bootstrap_server: str | None, command_config: Path | None
) -> tuple["Documents", KafkaClusterReader]:
    """Load documents while the cluster answers that the command line, else the environment, names.

    Raises `ProblemsError` with all that is wrong with both.
    """
    reader, refused = _reader(bootstrap_server, command_config)
    from infra.spec import load_documents  # noqa: PLC0415 - loads while the cluster answers

    loaded = load_documents(files)
    if reader is None or errors(loaded.problems):
        raise ProblemsError([*loaded.problems, *refused])
    return loaded, reader


def _reader(
    bootstrap_server: str | None, command_config: Path | None
) -> tuple[KafkaClusterReader | None, Sequence[Problem]]:
    try:
        reader = KafkaClusterReader(connection(bootstrap_server, command_config))
    except ProblemsError as error:
        return None, error.problems
    reader.open()
    return reader, ()


def compiled(
    documents: Sequence[TopologyDocument], records: Mapping[str, SetupRecord], reader: KafkaClusterReader
) -> tuple[tuple[CompiledApplication, ...], ClusterSnapshot]:
    """Compile documents for the cluster while it tells the rest of itself; raises `ProblemsError`."""
    request = snapshot_request(documents, records)
    reading = reader.ask(attrs.evolve(request, with_ids=bool(records)))
    from infra.compiler import compile_documents  # noqa: PLC0415 - likewise

    found = compile_documents(documents, reading.partitions)
    snapshot = reading.snapshot()
    if snapshot.partitions != reading.partitions:  # a topic came into sight meanwhile
        found = compile_documents(documents, snapshot.partitions)
    check_visible(reader, snapshot, found)
    return found, snapshot


def read(
    documents: Sequence[TopologyDocument],
    records: Mapping[str, SetupRecord],
    connected: Connection,
    *,
    protocol_is_known: bool = True,
) -> ClusterSnapshot:
    """Read what the documents and records need; raises `ProblemsError`.

    Unless `protocol_is_known`, groups of the streams protocol are looked for whatever the documents say.
    """
    request = snapshot_request(documents, records)
    if not protocol_is_known:
        request = attrs.evolve(request, streams_groups=frozenset(request.groups))
    return KafkaClusterReader(connected).read(request)
