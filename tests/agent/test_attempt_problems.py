"""What an operator reads about a topic that an attempt could not expand."""

from collections.abc import Callable
from pathlib import Path

from headwater.agent.decide.expansions import problem_of_result
from headwater.agent.state import Outcome, TopicResult
from headwater.model.problems import Problem
from headwater.planner.phrases import failure_texts
from headwater.report import problems_text

GOLDEN = Path(__file__).parent / "golden" / "attempt_problems.txt"
ERRORS = (
    ("TOPIC_AUTHORIZATION_FAILED", "Broker: Topic authorization failed"),
    ("POLICY_VIOLATION", "no more than 5 partitions"),
    ("THROTTLING_QUOTA_EXCEEDED", "Broker: Throttling quota has been exceeded"),
    ("INVALID_REPLICATION_FACTOR", "3 brokers are required, 2 are available"),
    ("_TIMED_OUT", "Local: Timed out"),
    ("UNKNOWN_SERVER_ERROR", "Broker: Unknown broker error"),
    ("LEADERSHIP_NOT_CONFIRMED", "the cluster did not confirm that this agent leads"),
)


def problem(error: str, message: str) -> Problem:
    return problem_of_result(
        "orders", TopicResult("orders-counts-changelog", 6, Outcome.FAILED, error, message)
    )


def test_texts(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN, problems_text(problem(*each) for each in ERRORS) + "\n")


def test_a_text_names_the_topic_and_the_error() -> None:
    for error, message in ERRORS:
        (text,) = failure_texts([problem(error, message)])
        assert "orders-counts-changelog" in text
        assert text.endswith(f" Found: {error}: {message}.")
    assert failure_texts([problem("_TIMED_OUT", "")])[0].endswith("changelog. Found: _TIMED_OUT.")
