"""Output records that the brokers refuse: they are given to the production exception handler, not written.

A broker refuses records after the batch is processed. The batch is then processed again, with this check: it
knows which input record each output record is derived from.
"""

from collections.abc import Callable

from headwater_spark.engine.records import CurrentRecord, InputRecord, OutputRecord

Refusal = Callable[[OutputRecord], str | None]
"""Output record → why the brokers refuse it; None = they do not."""


class RefusedRecordError(Exception):
    """The brokers refuse an output record."""


def no_refusal(_record: OutputRecord) -> None:
    """Refuse no record (`Refusal`)."""


class CheckedOutput:
    """Appends output records to `outputs`, except those that are refused: `on_refused` gets these.

    `on_refused` is called with the input record, the topic of the output record, and the reason.
    """

    def __init__(
        self,
        outputs: list[OutputRecord],
        refusal: Refusal,
        current: CurrentRecord,
        wall_clock: Callable[[], int],
        on_refused: Callable[[InputRecord, str, Exception], None],
    ) -> None:
        self._append = outputs.append
        self._refusal = refusal
        self._current = current
        self._wall_clock = wall_clock
        self._on_refused = on_refused

    def append(self, record: OutputRecord) -> None:
        reason = self._refusal(record)
        if reason is None:
            self._append(record)
        else:
            self._on_refused(self._current.record, record[0], RefusedRecordError(reason))

    def append_dead_letter(self, record: OutputRecord) -> None:
        """Append a record of the dead letter queue, with the current time if its own one is refused."""
        topic, partition, key, value, _, headers = record
        for candidate in (record, (topic, partition, key, value, self._wall_clock(), headers)):
            if self._refusal(candidate) is None:
                self._append(candidate)
                return
