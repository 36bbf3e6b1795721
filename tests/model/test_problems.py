"""Problems of `headwater.model.problems` as values."""

import pickle

import pytest

from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater_spark.driver.processor_move.attempts import ExpandedElsewhereError


@pytest.mark.parametrize("kind", [ProblemsError, ExpandedElsewhereError])
def test_other_processes_receive_the_problems_of_an_error(kind: type[ProblemsError]) -> None:
    problem = Problem(code=ProblemCode.NOT_RUNNABLE, summary="The folder is full.", fix="Delete files.")
    error = kind([problem])
    received = pickle.loads(pickle.dumps(error))  # noqa: S301 - this process has pickled it
    assert (type(received), received.problems, str(received)) == (kind, (problem,), str(error))
