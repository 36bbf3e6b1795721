"""KIP-287: foreign-key joins get more processors while subscriptions and responses are on their way."""

from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.problems import ProblemsError
from headwater_spark.driver.processor_move import entry_copy
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.serdes.internal_topics import names_processor
from headwater_spark.worker.partition_reader import RecordChunk
from tests.runtime.driver.joining_application import RESPONSES, STORE, SUBSCRIPTIONS, Joining
from tests.runtime.driver.memory_move import MemoryCluster

_KEYS = [f"o{each}" for each in range(10)]
_CUSTOMERS = [f"c{each}" for each in range(4)]
_CHANGES = st.one_of(
    st.tuples(st.just("order"), st.sampled_from(_KEYS), st.sampled_from([*_CUSTOMERS, None])),
    st.tuples(st.just("name"), st.sampled_from(_CUSTOMERS), st.booleans()),
    st.tuples(st.just("process"), st.integers(0, 30), st.integers(1, 4)),
    st.tuples(st.just("copy"), st.none(), st.none()),
    st.tuples(st.just("expand"), st.booleans(), st.none()),
)


def _apply(app: Joining, change: tuple[str, object, object]) -> None:
    match change:
        case ("order", str(key), str() | None as customer):
            app.order(key, customer)
        case ("name", str(customer), bool(is_deleted)):
            app.name(customer, is_deleted=is_deleted)
        case ("process", int(which), int(number)):
            for _ in range(number):
                if waiting := app.waiting():
                    app.process_one(waiting[which % len(waiting)])
        case ("copy", _, _) if app.processors < app.partitions:
            app.copy()
        case ("expand", bool(keep), _) if app.processors < app.partitions:
            app.expand(keep=keep)


def test_no_transaction_is_open_while_subscriptions_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """That may take longer than brokers let a transaction be open."""
    app = Joining(processors=2, partitions=2)
    for each in _CUSTOMERS:
        app.order(f"old order of {each}", each)
    app.process_all()
    app.declare()
    app.grow(8)
    app.copy()
    for each in _CUSTOMERS:
        app.order(f"new order of {each}", each)
    app.process_all()
    read = MemoryCluster.read
    uncommitted: list[int] = []

    def observed_read(
        cluster: MemoryCluster, topic: str, partition: int, first: int = 0
    ) -> Iterator[RecordChunk]:
        if topic == STORE and not first:  # the copy continues where it ended
            uncommitted.append(cluster.uncommitted)
        return read(cluster, topic, partition, first)

    monkeypatch.setattr(MemoryCluster, "read", observed_read)
    app.expand(keep=True)
    assert uncommitted == [0, 0, 0]  # both partitions are checked, one has entries to write again


@given(st.lists(_CHANGES, max_size=60), st.booleans())
def test_results_are_those_of_the_join_whenever_processors_are_added(
    changes: list[tuple[str, object, object]],
    doubles: bool,  # noqa: FBT001 - drawn
) -> None:
    """No expansion has to wait: each unprocessed response is in the partition of its key."""
    app = Joining(processors=2, is_declared=True, doubles=doubles)
    for change in changes:
        _apply(app, change)
    app.process_all()
    app.check_results()


@given(st.lists(_CHANGES, max_size=40), st.lists(_CHANGES, max_size=40), st.booleans())
def test_subscriptions_that_name_processors_are_written_again(
    before: list[tuple[str, object, object]],
    after: list[tuple[str, object, object]],
    doubles: bool,  # noqa: FBT001 - drawn
) -> None:
    """They were written before the document declared `processors`."""
    app = Joining(processors=2, partitions=2, doubles=doubles)
    for change in before:
        if change[0] != "expand":
            _apply(app, change)
    app.process_all()
    app.declare()
    app.grow(8)
    for change in after:
        _apply(app, change)
    app.process_all()
    if app.processors == 2:
        app.expand(keep=True)
    for partition in app.cluster.topics[STORE]:
        last = {record[4]: record[5] for record in partition}
        assert not any(value is not None and names_processor(value) for value in last.values())
    for customer in _CUSTOMERS:
        app.name(customer)
    app.process_all()
    app.check_results()


def test_subscriptions_are_written_again_with_few_of_them_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some have a later entry, or were deleted: each key keeps its last entry."""
    monkeypatch.setattr(entry_copy, "_MAX_KEYS_IN_MEMORY", 6)  # of six partitions
    app = Joining(processors=2, partitions=2)
    for number, key in enumerate(_KEYS):
        app.order(key, _CUSTOMERS[number % len(_CUSTOMERS)])
    app.process_all()
    app.declare()
    app.grow(8)
    app.order(_KEYS[0], None)
    app.order(_KEYS[1], _CUSTOMERS[2])
    app.process_all()
    before = _last_entries(app)
    app.expand(keep=True)
    after = _last_entries(app)
    assert {key for partition in after for key in partition} == {
        key for partition in before for key in partition
    }
    assert not any(names_processor(value) for partition in after for value in partition.values())
    app.process_all()
    for customer in _CUSTOMERS:
        app.name(customer)
    app.process_all()
    app.check_results()


def _last_entries(app: Joining) -> Sequence[Mapping[bytes, bytes]]:
    """Return the entries of subscriptions that a restore finds, for each partition."""
    found = [{record[4] or b"": record[5] for record in partition} for partition in app.cluster.topics[STORE]]
    return [{key: value for key, value in entries.items() if value is not None} for entries in found]


def test_responses_to_subscriptions_that_name_a_processor_need_not_be_processed_first() -> None:
    app = Joining(processors=2, partitions=2)
    for key in _KEYS:
        app.order(key, _CUSTOMERS[0])
    app.process_all()
    app.declare()
    app.grow(8)
    app.name(_CUSTOMERS[0])
    [customers] = app.waiting()
    app.process_one(customers)
    assert {topic for topic, _ in app.waiting()} == {RESPONSES}
    app.expand(keep=True)
    app.process_all()
    app.check_results()


def test_messages_are_in_the_partitions_of_their_keys_and_name_no_processor() -> None:
    app = Joining(processors=2, is_declared=True)
    for key in _KEYS:
        app.order(key, _CUSTOMERS[0])
    app.process_all()
    subscriptions = [record for partition in app.cluster.topics[SUBSCRIPTIONS] for record in partition]
    assert len(subscriptions) == len(_KEYS)
    assert not any(names_processor(record[5] or b"") for record in subscriptions)
    responses = [record for partition in app.cluster.topics[RESPONSES] for record in partition]
    assert {record[1] for record in responses} - {0, 1}, "not only those of the first processors"
    assert all(record[1] == default_partition(record[4] or b"", 8) for record in responses)


def test_a_row_in_another_partition_than_that_of_its_key_gets_its_responses() -> None:
    """Of a producer with another partitioner: such an application cannot get more processors."""
    app = Joining(processors=2, partitions=2, is_declared=True)
    key = next(key for key in _KEYS if default_partition(key.encode(), 2) == 1)
    app.cluster.write([("orders", 0, key.encode(), b"c0-1", 1, ())])
    app.orders[key] = "c0-1"
    app.process_all()
    app.name("c0")
    app.process_all()
    app.check_results()
    [subscription] = [record for partition in app.cluster.topics[SUBSCRIPTIONS] for record in partition]
    assert names_processor(subscription[5] or b"")
    app.grow(4)
    with pytest.raises(ProblemsError, match="has an entry whose key belongs to processor 1"):
        app.expand(keep=True)


def test_no_message_names_a_processor_between_two_doublings() -> None:
    """The runtime finds the initial number from the partitions: 5 processors after 2, for 8 partitions."""
    app = Joining(processors=2, is_declared=True, doubles=False)
    app.expand(keep=True)
    app.expand(keep=True)
    assert app.processors == 5
    for key in _KEYS:
        app.order(key, _CUSTOMERS[0])
    app.process_all()
    subscriptions = [record for partition in app.cluster.topics[SUBSCRIPTIONS] for record in partition]
    assert not any(names_processor(record[5] or b"") for record in subscriptions)
    responses = [record for partition in app.cluster.topics[RESPONSES] for record in partition]
    assert all(record[1] == default_partition(record[4] or b"", 8) for record in responses)
    app.check_results()


def test_an_application_without_processors_names_the_task() -> None:
    app = Joining(processors=2, partitions=2)
    for key in _KEYS:
        app.order(key, _CUSTOMERS[0])
    app.process_all()
    for partition in app.cluster.topics[SUBSCRIPTIONS]:
        for record in partition:
            value = record[5] or b""
            assert names_processor(value)
            left = value[18:-4]  # after version, instruction and hash
            assert int.from_bytes(value[-4:], "big") == default_partition(left, 2)
