"""An application without Spark that adds processors, and its control server."""

from collections.abc import Callable, Iterable, Mapping

import attrs

from headwater.control import Access, ControlServer, Surface
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.topology import Application
from headwater_spark.driver.metrics import Instruments
from headwater_spark.driver.processor_expansion.problems import requested_status
from headwater_spark.driver.states import ClientState
from headwater_spark.stream_threads import ProcessorsStatus, ThreadMetadata

TOKEN = "s3cret"
DELAYED = Problem(
    code=ProblemCode.UNPROCESSED_RECORDS,
    application="shop",
    topic="orders",
    summary="Partition 0 of orders has a record at offset 7 that was written with another partition count.",
    expected="records of keys whose partition this is",
    found="a record of another partition",
    why="The state of its key would be with another processor.",
    fix="Wait until all producers know the added partitions.",
)


@attrs.define
class ExpandingApplication:
    """An application without Spark. Each reading of its processors executes the next step of `steps`."""

    status: ProcessorsStatus = attrs.field(factory=lambda: ProcessorsStatus(4))
    state: ClientState = ClientState.RUNNING
    id: str = "shop"
    problems: tuple[()] = ()
    starting: str = ""
    cluster_problem: str = ""
    slots: int = 2
    steps: list[Callable[[], object]] = attrs.field(factory=list)
    requested: list[int] = attrs.field(factory=list)

    def stall_reason(self) -> str:
        return ""

    def subtopology_status(self) -> Iterable[Mapping[str, object]]:
        return ()

    def threads(self) -> tuple[ThreadMetadata, ...]:
        return ()

    def add_stream_thread(self) -> str | None:
        return None

    def remove_stream_thread(self, timeout_seconds: float | None = None) -> str | None:  # noqa: ARG002
        return None

    def processors(self) -> ProcessorsStatus:
        if self.steps:
            self.steps.pop(0)()
        return self.status

    def expand_processors(self, processors: int) -> None:
        self.requested.append(processors)
        application = Application(self.id, Location("shop.yaml"))
        self.status = requested_status(self.status, processors, self.state, application)

    def becomes(self, *statuses: ProcessorsStatus) -> None:
        """Show these statuses, one for each further reading."""
        for status in statuses:
            self.steps.append(lambda status=status: setattr(self, "status", status))  # type: ignore[misc]

    def serve(self) -> ControlServer:
        """Return a control server of this application, on a free port."""
        surface = Instruments(self, "shop").added_to(Surface.create("shop", host="here"))
        return ControlServer(surface, Access("127.0.0.1", 0, TOKEN))
