"""Topics to write to that are not there."""

from collections.abc import Mapping, Sequence

import attrs
from structlog.testing import capture_logs

from infra.model.problems import Problem, ProblemCode, ProblemsError
from infra.spec import load_text
from spark_jobs.runtime.driver.loading import runnable
from spark_jobs.runtime.driver.outputs import warn_of_missing

_DOCUMENT = """
application:
  id: shop
  config: {errors.dead.letter.queue.topic.name: dead}
topology:
  - stream: {topic: orders, serdes: {key: string, value: json}}
  - groupBy: {key: value.customer, name: by-customer}
  - count: {materialized: counts}
  - toStream:
  - to: {topic: totals}
"""


@attrs.frozen
class _Topics:
    there: tuple[str, ...] | None

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        if self.there is None:
            raise ProblemsError([Problem(code=ProblemCode.NOT_AUTHORIZED, summary="not allowed")])
        return {name: "id" for name in names if name in self.there}


def _told(*there: str, may_ask: bool = True) -> list[str]:
    document = runnable(load_text(_DOCUMENT, "shop.yaml").documents[0])
    with capture_logs() as lines:
        warn_of_missing(document.nodes, document.document.application, _Topics(there if may_ask else None))
    return [line["topic"] for line in lines if line["log_level"] == "warning"]


def test_users_topics_are_told_and_internal_ones_are_not() -> None:
    assert _told() == ["dead", "totals"]
    assert _told("totals") == ["dead"]
    assert _told("totals", "dead") == []


def test_who_may_not_ask_is_told_nothing() -> None:
    assert _told(may_ask=False) == []
