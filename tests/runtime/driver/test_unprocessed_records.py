"""KIP-287: the cut of an expansion waits until few records are unprocessed, and says so."""

from typing import TYPE_CHECKING

import pytest

from headwater_spark.driver.processor_expansion import held_queries
from headwater_spark.driver.processor_expansion.held_queries import UnprocessedRecords
from tests.runtime.driver.counting_application import KEYS, doubled

if TYPE_CHECKING:
    from headwater.model.problems import Problem


def test_a_long_wait_for_unprocessed_records_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_queries, "_MOST_UNPROCESSED", 0)
    app, move = doubled()
    reported: list[Problem] = []
    records = UnprocessedRecords(move, app.cluster, reported.append)
    assert records.are_few()
    app.produce(KEYS[0])
    assert not records.are_few()
    assert not records.are_few()
    assert not reported, "a short wait is normal"
    monkeypatch.setattr(held_queries, "_SILENT_SECONDS", 0.0)
    for _ in range(2):
        assert not records.are_few()
    assert reported[0] == reported[1], "it is logged once"
    app.process()
    assert records.are_few()
