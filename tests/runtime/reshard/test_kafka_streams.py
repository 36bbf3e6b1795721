"""`headwater reshard` and the real Kafka Streams: as if the application had the new count from the start."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import islice

import pytest

from headwater.model.problems import ProblemsError
from headwater.toolchain.broker.local import LocalBroker
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard.start import ReshardOptions
from headwater_spark.driver.reshard.state_copy import copy_state
from tests.oracle.exported_documents import loaded
from tests.oracle.kafka_streams import OF_THE_BROKER, KafkaStreams
from tests.runtime.engine.fuzzing.functions import PARTIAL
from tests.runtime.reshard.compared_applications import (
    Compared,
    Json,
    all_stores,
    batches,
    emitted_when_closed,
    suppressed,
    versions_and_buffer,
)
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.timeout(600)]

_COUNTS = {"orders": 2, "payments": 2, "customers": 3, "contracts": 2}
_NEW_COUNTS = {"orders": 3, "payments": 3, "customers": 4, "contracts": 3}


def test_each_kind_of_store_is_as_if_it_had_the_new_count_from_the_start(
    kafka: LocalBroker, unique: Callable[[str], str], kafka_streams_of: Callable[[str], KafkaStreams]
) -> None:
    """The document is exported from code: it does not say what the stores keep."""
    servers = kafka.bootstrap_servers
    compared = Compared(servers, Topics(servers), unique, all_stores(), _COUNTS, _NEW_COUNTS)
    series = batches(_COUNTS, keys=40, size=90, seed=38)
    first, second = next(series), next(series)
    compared.process(first)

    exported = loaded(str(kafka_streams_of(OF_THE_BROKER).exported(compared.json(compared.moved))))
    assert not isinstance(exported, str), exported
    with_calls = compared.reshard(ReshardOptions(checks_only=True))
    result = compared.reshard(ReshardOptions(processes=2), document=exported)
    assert result.counts == with_calls.counts
    assert result.written
    assert compared.entries(compared.moved) == compared.entries(compared.fresh)
    assert compared.reshard().counts == {}

    written = {name: compared.written(name) for name in compared.names}
    compared.process(second)
    moved, fresh = (compared.outputs(name, written[name]) for name in compared.names)
    assert moved == fresh
    assert compared.entries(compared.moved) == compared.entries(compared.fresh)


@pytest.mark.soak
def test_versions_and_buffered_records_are_as_if_they_had_the_new_count_from_the_start(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    servers, before, after = kafka.bootstrap_servers, {"orders": 2, "prices": 2}, {"orders": 5, "prices": 5}
    compared = Compared(servers, Topics(servers), unique, versions_and_buffer(), before, after)
    first, second = islice(batches(before, keys=30, size=200, seed=11), 2)
    compared.process(first)
    assert compared.reshard().written
    assert compared.entries(compared.moved) == compared.entries(compared.fresh)
    histories = compared.histories(compared.fresh, "history")
    assert max(map(len, histories.values())) > 3
    assert compared.histories(compared.moved, "history") == histories

    written = {name: compared.written(name) for name in compared.names}
    compared.process(second)
    moved, fresh = (compared.outputs(name, written[name]) for name in compared.names)
    assert moved == fresh
    assert fresh["out-late"]


@pytest.mark.soak
@pytest.mark.parametrize("processes", [1, 2])
def test_suppressed_updates_are_as_if_they_had_the_new_count_from_the_start(
    processes: int, kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    before, after = {"orders": 2}, {"orders": 5}
    servers, steps = (
        kafka.bootstrap_servers,
        suppressed("1m"),
    )  # the first batch lasts for less, both for more
    compared = Compared(servers, Topics(servers), unique, steps, before, after)
    first, second = islice(batches(before, keys=40, size=200, seed=12), 2)
    compared.process(first)
    assert compared.reshard(ReshardOptions(processes=processes)).written
    entries = compared.entries(compared.moved)
    buffered = [key for (store, _), found in entries.items() if store == "calmer-store" for key in found]
    assert len(buffered) == 40
    assert entries == compared.entries(compared.fresh)

    written = {name: compared.written(name) for name in compared.names}
    compared.process(second)
    moved, fresh = (compared.outputs(name, written[name]) for name in compared.names)
    assert moved == fresh
    assert fresh["out-calmer"]
    assert compared.entries(compared.moved) == compared.entries(compared.fresh)


@pytest.mark.soak
def test_windows_that_were_emitted_are_not_emitted_again(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    """Kafka Streams finds in the committed texts until when a task has emitted windows."""
    before, after = {"orders": 2}, {"orders": 4}
    servers, steps = kafka.bootstrap_servers, emitted_when_closed()
    compared = Compared(servers, Topics(servers), unique, steps, before, after)
    first, second = islice(batches(before, keys=40, size=200, seed=21), 2)
    compared.process(first)
    assert compared.reshard().written
    compared.process(second)
    moved, fresh = (
        {key: Counter(values) for key, values in compared.outputs(name, {})["out-closed"].items()}
        for name in compared.names
    )
    assert moved == fresh
    assert fresh


@pytest.mark.soak
def test_a_renamed_store_has_the_state_of_the_old_one(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    servers, counts = kafka.bootstrap_servers, {"orders": 2}
    steps: list[Json] = [
        {"stream": {"topic": "orders", "as": "orders"}},
        {"groupBy": {"from": "orders", "key": PARTIAL.key, "name": "by-value"}},
        {"count": {"materialized": "totals"}},
        {"toStream": {}},
        {"to": {"topic": "out-totals"}},
    ]
    compared = Compared(servers, Topics(servers), unique, steps, counts, counts)
    moved = compared.moved
    before = json.loads(
        json.dumps(compared.json(moved)).replace("by-value", "old").replace('"totals"', '"old-totals"')
    )
    first, second = islice(batches(counts, keys=20, size=100, seed=5), 2)
    compared.process(first, before)
    renames = [
        (f"{moved}-old-totals-changelog", f"{moved}-totals-changelog"),
        (f"{moved}-old-repartition", f"{moved}-by-value-repartition"),
    ]
    result = copy_state(compared.document(moved), compared.connection, renames, report_no_progress)
    assert result.records
    written = {name: compared.written(name) for name in compared.names}
    compared.process(second)
    found, expected = (compared.outputs(name, written[name]) for name in compared.names)
    assert found == expected
    entries = compared.entries(moved)
    assert {each: entries[each] for each in entries if each[0] == "totals"} == compared.entries(
        compared.fresh
    )
    with pytest.raises(ProblemsError, match="it has records already"):
        copy_state(compared.document(moved), compared.connection, renames, report_no_progress)
