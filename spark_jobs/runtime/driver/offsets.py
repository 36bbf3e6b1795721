"""Where the input stands: committed offsets, and where to begin where there are none."""

import time
from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from infra.model.problems import Problem, ProblemCode, ProblemsError
from infra.observe import Connection
from spark_jobs.runtime.driver.reset import Reset, ResetKind
from spark_jobs.runtime.worker import clients

Place = tuple[str, int]
Offsets = Mapping[Place, int]
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001 - the library's own codes begin with an underscore
_SETTLING_SECONDS = 5.0
_LOOK_SECONDS = 0.005
_EARLIEST, _LATEST = Reset(ResetKind.EARLIEST), Reset(ResetKind.LATEST)


class Positions:
    """The offsets of one consumer group. Methods raise `KafkaException`.

    A consumer asks for all of it: librdkafka's admin client (2.16) crashes the process when the group's
    coordinator is not up yet, and aborts it when brokers go away while it looks for partitions' leaders.
    """

    def __init__(self, connection: Connection, group: str) -> None:
        self._group = group
        self._consumer = clients.consumer(connection, group)
        self._seeing_all = clients.consumer(connection, group, {"isolation.level": "read_uncommitted"})

    def committed(self, places: Iterable[Place]) -> Offsets:
        """Return the committed offsets; places without one are missing."""
        found = clients.committed(self._consumer, places)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def ends(self, places: Sequence[Place]) -> Offsets:
        """Return the offsets that the next committed records get."""
        return self._offsets({place: _time(_LATEST, 0) for place in places})

    def settled_ends(self, places: Sequence[Place], seconds: float = _SETTLING_SECONDS) -> Offsets:
        """Return `ends` when all that was written by now is committed.

        A commit is answered as soon as the coordinator has noted it. The partitions learn of it a little
        later, and until then their ends lie before its records. Raises `KafkaException` after `seconds`.
        """
        written = self._offsets({place: _time(_LATEST, 0) for place in places}, self._seeing_all)
        deadline = time.monotonic() + seconds
        ends = self.ends(places)
        while any(ends[place] < end for place, end in written.items()):
            if time.monotonic() > deadline:
                raise KafkaException(KafkaError(_TIMED_OUT, f"transactions are open after {seconds:g} s"))
            time.sleep(_LOOK_SECONDS)
            ends = self.ends(places)
        return ends

    def left(self, places: Sequence[Place]) -> int:
        """Return how many records are still to be read; a place that is gone raises at once.

        What is committed is asked for first: it raises while no broker answers.
        """
        committed = self.committed(places)
        ends = self._asked_once({place: _time(_LATEST, 0) for place in places})
        return sum(max(0, end - committed.get(place, 0)) for place, end in ends.items())

    def begin(self, places: Mapping[Place, Reset], now_ms: int) -> Offsets:
        """Return where each place is read from; what is chosen now is committed, so that it stays chosen.

        Raises `ProblemsError` (InvalidConfig) where the policy is `none` and nothing is committed.
        """
        known = self.committed(places)
        new = {place: reset for place, reset in places.items() if place not in known}
        if refused := [place for place, reset in new.items() if reset.kind is ResetKind.NONE]:
            raise ProblemsError([_nowhere(self._group, *place) for place in refused])
        chosen = self._offsets({place: _time(reset, now_ms) for place, reset in new.items()})
        lacking = [place for place, offset in chosen.items() if offset < 0]  # nothing as young as that
        chosen = {**chosen, **self.ends(lacking)}
        if chosen:
            partitions = [TopicPartition(*place, offset) for place, offset in chosen.items()]
            self._consumer.commit(offsets=partitions, asynchronous=False)
        return {**known, **chosen}

    def rewind(self, places: Sequence[Place]) -> None:
        """Commit the first offsets, without a marker: what was committed is of topics that are gone."""
        firsts = self._offsets({place: _time(_EARLIEST, 0) for place in places})
        if firsts:
            partitions = [TopicPartition(*place, offset) for place, offset in firsts.items()]
            self._consumer.commit(offsets=partitions, asynchronous=False)

    def close(self) -> None:
        self._consumer.close()
        self._seeing_all.close()

    @clients.retry_transient
    def _offsets(self, wanted: Mapping[Place, int], consumer: Consumer | None = None) -> Offsets:
        return self._asked_once(wanted, consumer)

    def _asked_once(self, wanted: Mapping[Place, int], consumer: Consumer | None = None) -> Offsets:
        if not wanted:
            return {}
        asked = [TopicPartition(*place, time_ms) for place, time_ms in wanted.items()]
        found = (consumer or self._consumer).offsets_for_times(asked, clients.REQUEST_SECONDS)
        for partition in found:
            if partition.error is not None:
                raise KafkaException(partition.error)
        return {(each.topic, each.partition): each.offset for each in found}


def _time(reset: Reset, now_ms: int) -> int:
    """Return what the protocol's ListOffsets takes for a time: -1 is the end, -2 the beginning."""
    match reset.kind:
        case ResetKind.LATEST:
            return -1
        case ResetKind.BY_DURATION:
            return now_ms - reset.back_ms
        case _:
            return -2


def _nowhere(group: str, topic: str, partition: int) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Nothing says where to begin reading partition {partition} of {topic}.",
        application=group,
        topic=topic,
        expected=f"an offset committed by group {group}, or a reset policy",
        found="neither: the policy is none",
        why="With auto.offset.reset none an application does not choose by itself what it skips or repeats.",
        fix="Commit the offset with kafka-consumer-groups.sh, or set earliest or latest.",
    )
