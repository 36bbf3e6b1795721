"""The cluster that a command line names."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import click

from infra.model.cluster import ClusterSnapshot
from infra.model.record import SetupRecord
from infra.model.topology import TopologyDocument
from infra.observe import Connection, KafkaClusterReader, snapshot_request


def connection(bootstrap_server: str | None, command_config: Path | None) -> Connection | None:
    """Return how to reach the cluster, None if the command line names none; raises `ProblemsError`."""
    if command_config is not None:
        text = _text(command_config)
        # Of two entries the last counts.
        return Connection.from_properties(
            f"{text}\nbootstrap.servers={bootstrap_server}\n" if bootstrap_server else text
        )
    if bootstrap_server is not None:
        return Connection.from_environment({**os.environ, "HEADWATER_BOOTSTRAP_SERVERS": bootstrap_server})
    return None


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


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise click.BadParameter(f"{path} cannot be read: {reason}.", param_hint="--command-config") from None
