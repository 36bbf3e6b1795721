import threading

from spark_jobs.runtime.driver.rounds import Rounds

LONG = 30.0


def test_a_batch_is_extended_to_the_end_of_its_round() -> None:
    rounds = Rounds()
    rounds.ended("0", {("t", 0): 0, ("t", 1): 0})
    rounds.ended("0", {("t", 0): 10, ("t", 1): 8})
    rounds.ended("0", {("t", 0): 20, ("t", 1): 30})
    assert rounds.whole("0", {("t", 0): 5, ("t", 1): 8}, LONG) == {("t", 0): 10, ("t", 1): 8}
    assert rounds.whole("0", {("t", 0): 11, ("t", 1): 8}, LONG) == {("t", 0): 20, ("t", 1): 30}


def test_a_reader_waits_for_the_rest_of_a_round() -> None:
    rounds = Rounds()
    answer: list[object] = []
    with rounds.under_way("0"):
        reader = threading.Thread(target=lambda: answer.append(rounds.whole("0", {("t", 0): 3}, LONG)))
        reader.start()
        rounds.ended("0", {("t", 0): 2})
        assert not answer
        rounds.ended("0", {("t", 0): 7})
        reader.join(LONG)
    assert answer == [{("t", 0): 7}]


def test_a_batch_that_fails_keeps_nobody_waiting() -> None:
    rounds = Rounds()
    answer: list[object] = []
    with rounds.under_way("0"):
        reader = threading.Thread(target=lambda: answer.append(rounds.whole("0", {("t", 0): 3}, LONG)))
        reader.start()
    reader.join(LONG)
    assert answer == [{}]


def test_a_writer_that_is_too_slow_is_not_waited_for_any_longer() -> None:
    rounds = Rounds()
    with rounds.under_way("0"):
        assert rounds.whole("0", {("t", 0): 3}, 0.01) == {}
