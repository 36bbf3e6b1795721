"""The content of the endpoint of a client, to which the parts of the client add themselves.

surface = Surface.create("agent-1").with_section(Section("agent", status, ready)).with_route(route)
Counter("records", "…", registry=surface.registry)
ControlServer(surface, access_of("127.0.0.1:9878", os.environ)).start()
"""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import attrs
from prometheus_client import CollectorRegistry, Counter, ProcessCollector, disable_created_metrics

Body = Mapping[str, Any]


@attrs.frozen
class Health:
    """The health of a part of the client; `reason` is one sentence, empty if the part is healthy."""

    ok: bool = True
    reason: str = ""


HEALTHY = Health()


def _report_fine() -> Health:
    return HEALTHY


@attrs.frozen(kw_only=True)
class Section:
    """One part of a client. Other threads call its functions at any time: they must not block.

    `status` returns the JSON object of `/status` under the key `name`. `live` not ok means that the process
    must be restarted (`/health/live`), `ready` not ok that the part cannot work at present (`/health/ready`).
    """

    name: str
    status: Callable[[], Body]
    ready: Callable[[], Health] = _report_fine
    live: Callable[[], Health] = _report_fine


class Refused(Exception):  # noqa: N818 - an answer to a request, not an error of the client
    """Raised by a route that refuses a request; `message` says why and what to do.

    `more` are further keys of the answer, in addition to `error`.
    """

    def __init__(
        self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, more: Body | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.more = more or {}


@attrs.frozen
class Route:
    """`POST path` calls `handle` with the JSON object of the request and answers with its return value.

    `handle` may raise `Refused`. It runs in a thread of its own. `GET path` answers with the value of `read`,
    if there is one; as all reading, it needs no credentials.
    """

    path: str
    handle: Callable[[Body], Body]
    read: Callable[[], Body] | None = None


@attrs.frozen(kw_only=True)
class Surface:
    """The content of the endpoint of one client. `about` are the first keys of `/status`.

    `failed_stream_threads` is the metric of KIP-663: a part that runs stream threads counts those that die.
    """

    client_id: str
    about: Mapping[str, str]
    registry: CollectorRegistry
    failed_stream_threads: Counter
    sections: tuple[Section, ...] = ()
    routes: tuple[Route, ...] = ()

    @classmethod
    def create(cls, client_id: str, **about: str) -> "Surface":
        """Return the surface of a client without parts, with the metrics of its process."""
        # Otherwise every counter has a second sample with the time of its creation.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        threads = Counter(
            "failed_stream_threads",
            "Stream threads that died (KIP-663)",
            ["client_id"],
            registry=registry,
        )
        return cls(
            client_id=client_id,
            about=about,
            registry=registry,
            failed_stream_threads=threads.labels(client_id),
        )

    def with_section(self, section: Section) -> "Surface":
        return attrs.evolve(self, sections=(*self.sections, section))

    def with_route(self, route: Route) -> "Surface":
        return attrs.evolve(self, routes=(*self.routes, route))

    def ready(self) -> Health:
        return _worst_health(section.ready() for section in self.sections)

    def live(self) -> Health:
        return _worst_health(section.live() for section in self.sections)

    def status(self) -> Body:
        """Return the document of `/status`: topology_schemas/agent-status.v1.schema.json."""
        return {
            "version": 1,
            "clientId": self.client_id,
            **self.about,
            "live": attrs.asdict(self.live()),
            "ready": attrs.asdict(self.ready()),
            **{section.name: section.status() for section in self.sections},
        }


def _worst_health(found: Iterable[Health]) -> Health:
    bad = [health for health in found if not health.ok]
    return Health(ok=False, reason=" ".join(health.reason for health in bad)) if bad else HEALTHY
