"""Everything around one agent that people and programs see, put together."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version

import attrs

from infra.observe import Connection
from spark_jobs.agent.instruments import AgentInstruments
from spark_jobs.agent.lag import LagWatch, consumed_topics
from spark_jobs.agent.ports import Documents
from spark_jobs.agent.switches import SwitchedDocuments
from spark_jobs.control import Access, ControlServer, Surface


@attrs.frozen
class Endpoint:
    """`documents` are those that the loop is to follow; `url` is None when nothing is served."""

    instruments: AgentInstruments
    documents: SwitchedDocuments
    url: str | None


@contextmanager
def serve(
    connection: Connection,
    documents: Documents,
    client_id: str,
    access: Access | None,
    *,
    wake: Callable[[], None],
    trouble: Callable[[], str] = lambda: "",
) -> Iterator[Endpoint]:
    """Serve an agent's endpoint until the context ends; raises `ProblemsError` when it cannot listen.

    Without `access` there is only the log.
    """
    surface = Surface.of(client_id, host=socket.gethostname(), headwater=version("headwater"))
    instruments = AgentInstruments(surface.registry, client_id, trouble)
    switched = SwitchedDocuments(documents)
    if access is None:
        yield Endpoint(instruments, switched, None)
        return
    surface = surface.with_section(instruments.section()).with_route(switched.route(wake))
    lag = LagWatch(connection, surface.registry, client_id, lambda: consumed_topics(instruments.state))
    with ControlServer(surface, access) as server, lag:
        yield Endpoint(instruments, switched, server.url)
