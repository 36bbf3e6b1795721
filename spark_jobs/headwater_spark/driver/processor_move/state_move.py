"""Execute a move of the state, step by step (`moves`)."""

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial

from headwater.model.offset_metadata import decode_mark
from headwater.model.problems import ProblemsError
from headwater_spark.driver.processor_move.attempts import check_attempt
from headwater_spark.driver.processor_move.entry_copy import EntryCopy, MoveCluster, MoveProducer, Report
from headwater_spark.driver.processor_move.moves import Committed, Move, MovedPart, MoveStep
from headwater_spark.driver.processor_move.problems import client_runs
from headwater_spark.engine.records import TopicPartition


class StateMove:
    """One execution of a move; `observed` is what was committed when the input was checked.

    `copy` has copied entries while the application ran; None = nothing is copied. A second execution fences
    this one: then `run` raises `KafkaException`.
    """

    def __init__(
        self,
        move: Move,
        cluster: MoveCluster,
        observed: Mapping[TopicPartition, Committed],
        report: Report,
        copy: EntryCopy | None = None,
    ) -> None:
        self._move = move
        self._cluster = cluster
        self._observed = observed
        self._is_continued = copy is not None
        self._copy = copy or EntryCopy(move, cluster, report)

    @property
    def copied(self) -> int:
        """The number of entries that were written to changelog partitions of added processors."""
        return self._copy.copied

    def run(self, opened: MoveProducer | None = None) -> None:
        """Execute all steps that are not done, with the `opened` producer of the move, if there is one.

        Raises:
            ProblemsError: A client runs, or the offset of a partition is missing.
            OtherAttemptError: Another client has deleted what `copy` has copied.
            KafkaException: Kafka fails, or the move is executed somewhere else.
        """
        partitions = (*self._move.partitions, *self._move.announcements)
        name = self._move.producer_name
        with self._cluster.producer(name) if opened is None else nullcontext(opened) as producer:
            if self._is_continued:
                check_attempt(self._move, self._cluster)
            while True:
                counts = self._cluster.counts(self._move.changelogs)
                unstable = self._cluster.committed(partitions, stable=False)
                if self._move.next_step(unstable, counts) is MoveStep.MARK:
                    self._mark()
                committed = self._cluster.committed(partitions)
                match self._move.next_step(committed, counts):
                    case MoveStep.EXPAND:
                        self._cluster.expand(dict.fromkeys(self._move.changelogs, self._move.after))
                    case MoveStep.COPY:
                        if not self._move.is_live and (undeleted := self._move.undeleted(committed)):
                            self._copy.delete_misplaced(producer, undeleted)
                        self._copy.advance(producer, is_last=True)
                        self._copy.rewrite_outdated(producer)
                        self._commit(producer, committed, self._move.assigned(committed))
                    case MoveStep.CLEAR:
                        self._copy.clear(producer)
                        self._commit(producer, committed, self._move.completed(committed))
                    case MoveStep.DONE:
                        return
                    case MoveStep.MARK:
                        pass  # a partition was added to the input meanwhile

    def _mark(self) -> None:
        tasks = [(part, each) for part in self._move.parts for each in range(self._move.before)]
        # Most of a mark is waiting for brokers, and an application that runs processes nothing meanwhile.
        self._cluster.at_once([partial(self._mark_task, *task) for task in tasks])

    def _mark_task(self, part: MovedPart, processor: int) -> None:
        """Mark the partitions of a task, as the task itself: so what a client commits is not overwritten."""
        with self._cluster.producer(self._move.task_name(part, processor)) as producer:
            found = self._cluster.committed(part.partitions_of(processor, self._move.old))
            if found and all(decode_mark(each.text) is not None for each in found.values()):
                return
            commits: dict[TopicPartition, tuple[int, str]] = {}
            for (topic, partition), each in found.items():
                is_marked = decode_mark(each.text) is not None
                if not is_marked and self._observed.get((topic, partition), each) != each:
                    raise ProblemsError([client_runs(self._move.application)])
                # Without a committed offset it had no record when the input was checked (`check_input`).
                offset = self._first(topic, partition) if each.offset is None else each.offset
                commits[topic, partition] = offset, self._move.marked(partition, each.text)
            producer.commit(commits)

    def _first(self, topic: str, partition: int) -> int:
        return self._cluster.bounds([(topic, partition)])[topic, partition][0]

    def _commit(
        self,
        producer: MoveProducer,
        committed: Mapping[TopicPartition, Committed],
        texts: Mapping[TopicPartition, str],
    ) -> None:
        producer.commit({each: (committed[each].offset or 0, text) for each, text in texts.items()})
