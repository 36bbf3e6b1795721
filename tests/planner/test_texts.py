"""The complete texts of errors and warnings."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import APPLICATION, Severity
from headwater.planner.rules.counts import over_partitioned as over_partitioned_topics
from headwater.planner.rules.topics import replaced_topics
from headwater.planner.run import ActiveApplication
from headwater.report import problems_text
from tests.planner.scenarios import SCENARIOS, Scenario
from tests.planner.simulated_cluster import CHANGELOG, MANUAL, REPARTITION, SimulatedCluster, application

GOLDEN = Path(__file__).parent / "golden"
TOPICS = (REPARTITION, CHANGELOG, "orders-out", "shared-out", "orders-sums-counts-changelog")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_texts(scenario: Scenario, golden: Callable[[Path, str], None]) -> None:
    problems = scenario().problems
    golden(GOLDEN / f"{scenario.__name__}.txt", problems_text(problems) + "\n")
    for problem in problems:
        assert problem.summary.endswith(".")
        assert problem.why.endswith(".")
        assert problem.fix.endswith(".")
        assert problem.expected
        assert problem.found
        named = [topic for topic in TOPICS if topic in problem.summary]
        assert not named or problem.topic in named


def test_each_text_has_a_scenario() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == {scenario.__name__ for scenario in SCENARIOS}


def running(cluster: SimulatedCluster, compiled: CompiledApplication) -> ActiveApplication:
    record = cluster.records.get(compiled.application.id)
    return ActiveApplication.from_snapshot(compiled, cluster.snapshot, record, caller=APPLICATION)


def test_a_running_application_is_stopped_before_a_topic_is_restored() -> None:
    compiled = application(config=MANUAL)
    cluster = SimulatedCluster.set_up(compiled)
    cluster.recreate(CHANGELOG, is_empty=False)
    (problem,) = replaced_topics(running(cluster, compiled))
    assert problem.severity is Severity.ERROR
    assert problem.fix == (
        "Restore the topic while the application is stopped, or rebuild the state by reprocessing the source "
        "topics. Then start the application again."
    )


def test_a_running_application_does_not_know_who_set_a_topic_up() -> None:
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 8)
    (problem,) = over_partitioned_topics(running(cluster, application()))
    assert problem.summary == f"Internal topic {CHANGELOG} has more partitions than expected."
