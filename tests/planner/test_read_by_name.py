"""A repartition topic that its application reads by its full name: Kafka Streams requires that it exists."""

import pytest

from headwater.model.problems import ProblemCode, errors
from tests.advice.trial import Trial
from tests.advice.trials import COPY, REPARTITION, begin, created_elsewhere

READ_BY_NAME = f"""{COPY}  - stream: {REPARTITION}
  - to: orders-copy
"""
READ_BY_HANDLE = (
    COPY.replace("{name: by-k}", "{name: by-k, as: by-k}") + "  - to: {from: by-k, topic: orders-copy}\n"
)


def _begin(text: str = READ_BY_NAME, **config: str) -> Trial:
    trial = begin(text, **config)
    trial.cluster.create("orders-copy", 4)
    return trial


@pytest.mark.parametrize("config", [{}, {"internal_topics_setup": "manual"}])
def test_the_first_run_creates_the_topic_that_the_application_requires(config: dict[str, str]) -> None:
    trial = _begin(**config)

    first = trial.plan()
    assert not errors(first.problems)
    (warning,) = (problem for problem in first.problems if problem.topic == REPARTITION)
    assert warning.code is ProblemCode.MISSING_SOURCE_TOPIC
    assert "create it with 4 partitions" in warning.fix

    trial.up()
    assert trial.cluster.topics[REPARTITION].partitions == 4
    assert [problem for problem in trial.plan().problems if problem.topic == REPARTITION] == []


def test_the_handle_of_the_topic_needs_no_existing_topic() -> None:
    trial = _begin(READ_BY_HANDLE)

    assert [problem for problem in trial.plan().problems if problem.topic == REPARTITION] == []


@pytest.mark.parametrize("partitions", [3, 7])
def test_another_count_on_the_cluster_is_an_error(partitions: int) -> None:
    trial = _begin()
    trial.up()
    trial.cluster.change(REPARTITION, partitions=partitions)

    (problem,) = errors(trial.plan().problems)
    assert problem.topic == REPARTITION
    assert str(partitions) in str(problem.found)

    before = created_elsewhere(_begin(), REPARTITION, partitions=partitions)
    assert REPARTITION in {each.topic for each in errors(before.plan().problems)}
