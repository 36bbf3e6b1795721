"""The end offsets of rounds: readers wait for them, but not for ever."""

import threading

from headwater_spark.driver.input.rounds import RoundEnds

LONG = 30.0


def test_batch_is_extended_to_the_end_of_its_round() -> None:
    rounds = RoundEnds()
    rounds.record("0", {("t", 0): 0, ("t", 1): 0})
    rounds.record("0", {("t", 0): 10, ("t", 1): 8})
    rounds.record("0", {("t", 0): 20, ("t", 1): 30})
    assert rounds.ends_covering("0", {("t", 0): 5, ("t", 1): 8}, LONG) == {("t", 0): 10, ("t", 1): 8}
    assert rounds.ends_covering("0", {("t", 0): 11, ("t", 1): 9}, LONG) == {("t", 0): 20, ("t", 1): 30}


def test_partitions_may_be_in_different_rounds() -> None:
    """Tasks whose records are held back by another topic read on later."""
    rounds = RoundEnds()
    rounds.record("0", {("t", 0): 10, ("t", 1): 8})
    rounds.record("0", {("t", 0): 20, ("t", 1): 30})
    assert rounds.ends_covering("0", {("t", 0): 11, ("t", 1): 3}, LONG) == {("t", 0): 20, ("t", 1): 8}


def test_reader_waits_for_the_rest_of_a_round() -> None:
    rounds = RoundEnds()
    answer: list[object] = []
    with rounds.running("0"):
        reader = threading.Thread(
            target=lambda: answer.append(rounds.ends_covering("0", {("t", 0): 3}, LONG))
        )
        reader.start()
        rounds.record("0", {("t", 0): 2})
        assert not answer
        rounds.record("0", {("t", 0): 7})
        reader.join(LONG)
    assert answer == [{("t", 0): 7}]


def test_reader_does_not_wait_after_a_failed_batch() -> None:
    rounds = RoundEnds()
    answer: list[object] = []
    with rounds.running("0"):
        reader = threading.Thread(
            target=lambda: answer.append(rounds.ends_covering("0", {("t", 0): 3}, LONG))
        )
        reader.start()
    reader.join(LONG)
    assert answer == [{}]


def test_reader_stops_waiting_for_a_slow_writer_after_its_time_out() -> None:
    rounds = RoundEnds()
    with rounds.running("0"):
        assert rounds.ends_covering("0", {("t", 0): 3}, 0.01) == {}
