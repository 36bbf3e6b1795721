"""States of an agent for tests, with an example of each field."""

from headwater.agent.decide.expansions import problem_of_result
from headwater.agent.state import (
    AgentState,
    ApplicationState,
    Expansion,
    Outcome,
    Parallelism,
    Phase,
    Shortfall,
    TopicResult,
)
from headwater.model.problems import Problem, ProblemCode

UNREACHABLE = Problem(
    code=ProblemCode.CLUSTER_UNREACHABLE,
    summary="No Kafka broker can be reached.",
    expected="a broker at localhost:9092",
    found="no answer within 5 s",
    why="Without the current state of the cluster, nothing is planned, changed or started.",
    fix="Check the bootstrap servers.",
)
OVER_PARTITIONED = Problem(
    code=ProblemCode.OVER_PARTITIONED,
    summary="payments-app-totals-changelog has more partitions than its sources.",
    topic="payments-app-totals-changelog",
    expected="3 partitions",
    found="5 partitions",
    why="Partitions cannot be taken away.",
    fix="Expand the source topic payments to 5 partitions.",
)
EXPANDING = ApplicationState(
    id="orders-app",
    phase=Phase.EXPANDING,
    is_enabled=True,
    parallelism=(Parallelism(0, 6, 6), Parallelism(1, 3, 6)),
    shortfalls=(
        Shortfall("orders-app", "orders-app-counts-changelog", 3, 6),
        Shortfall("orders-app", "orders-app-counts-repartition", 3, 6),
    ),
    expansion=Expansion(
        number=4,
        started_ms=1_000,
        before={},
        attempts=2,
        failing_since_ms=3_000,
        done=("orders-app-x-changelog",),
    ),
    attempt_problems=(
        problem_of_result(
            "orders-app",
            TopicResult(
                "orders-app-counts-changelog",
                6,
                Outcome.FAILED,
                "TOPIC_AUTHORIZATION_FAILED",
                "Broker: Topic authorization failed",
            ),
        ),
    ),
)
REFUSED = ApplicationState(
    id="payments-app",
    phase=Phase.REFUSED,
    problems=(OVER_PARTITIONED,),
    parallelism=(Parallelism(0, 3, 3),),
)
STEADY = ApplicationState(id="totals-app", is_enabled=True, parallelism=(Parallelism(0, 6, 6),))
LEADING = AgentState(
    clock_ms=5_500,
    applications={app.id: app for app in (STEADY, REFUSED, EXPANDING)},
    term=41,
    is_recovered=True,
    failures=2,
    observed_at_ms=5_000,
)
FOLLOWING = AgentState(
    clock_ms=9_000,
    applications={
        "orders-app": ApplicationState(
            id="orders-app",
            phase=Phase.WAITING,
            is_enabled=True,
            parallelism=(Parallelism(0, 3, 6), Parallelism(1, 6, 6)),
        )
    },
    observed_at_ms=8_000,
)
UNREADABLE = AgentState(clock_ms=9_000, read_problems=(UNREACHABLE,))
