"""Records that cannot be handled: the exception handlers' answers and the dead-letter topic."""

from spark_jobs.runtime.engine.partitioners.checked import TaskMigrated
from spark_jobs.runtime.engine.program_interface import EngineSettings
from spark_jobs.runtime.engine.records import Headers, InputRecord
from spark_jobs.runtime.engine.serdes import RegistryUnavailableError
from spark_jobs.runtime.engine.stores.layers import Append

_ERRORS = "__streams.errors."


class PoisonRecordError(Exception):
    """A record (or a punctuation) that cannot be handled, where the handlers say to fail.

    The text names topic, partition and offset of the input record, and what went wrong.
    """

    @classmethod
    def of(cls, record: InputRecord, doing: str, cause: Exception) -> "PoisonRecordError":
        topic, partition, offset = record[:3]
        where = f"record of {topic}, partition {partition}, offset {offset}"
        return cls(f"{where}: {doing}: {type(cause).__name__}: {cause}")


class Failures:
    """Decides on each failure: raise, or send the input record to the dead letters and go on.

    `skipped` counts those passed over (`dropped-records-total`), `latest` says what was wrong with the last.
    """

    def __init__(self, settings: EngineSettings, append: Append) -> None:
        self._settings = settings
        self._append = append
        self.skipped = 0
        self.latest: str | None = None

    @property
    def stops(self) -> bool:
        """Whether a record that cannot be processed ends the run."""
        return self._settings.on_processing_error == "fail"

    def bad_input(self, record: InputRecord, cause: Exception) -> None:
        """`deserialization.exception.handler`."""
        self._decide(self._settings.on_bad_input, record, "cannot be read", cause)

    def processing(self, record: InputRecord, cause: Exception) -> None:
        """`processing.exception.handler`."""
        self._decide(self._settings.on_processing_error, record, "cannot be processed", cause)

    def punctuation(self, task: str, cause: Exception) -> None:
        """`processing.exception.handler`; there is no record that could be sent to the dead letters."""
        if self._settings.on_processing_error == "fail":
            raise PoisonRecordError(
                f"task {task}: a punctuation failed: {type(cause).__name__}: {cause}"
            ) from cause
        self.skipped += 1
        self.latest = f"task {task}: a punctuation failed: {type(cause).__name__}: {cause}"

    def bad_output(self, record: InputRecord, topic: str, cause: Exception) -> None:
        """`production.exception.handler`."""
        self._decide(self._settings.on_bad_output, record, f"cannot be written to {topic}", cause)

    def _decide(self, handler: str, record: InputRecord, doing: str, cause: Exception) -> None:
        if isinstance(cause, TaskMigrated | RegistryUnavailableError):
            raise cause  # nothing is wrong with the record: it waits for a partition, or a schema
        if handler == "fail":
            raise PoisonRecordError.of(record, doing, cause) from cause
        self.skipped += 1
        self.latest = str(PoisonRecordError.of(record, doing, cause))
        if self._settings.dead_letter_topic is not None:
            _, _, _, timestamp, key, value, headers = record
            told = headers + _told(record, cause)
            self._append((self._settings.dead_letter_topic, None, key, value, timestamp, told))


def _told(record: InputRecord, cause: Exception) -> Headers:
    """The headers of KIP-1034; the stack trace is left to the logs."""
    topic, partition, offset = record[:3]
    told = {
        "exception": type(cause).__qualname__,
        "message": str(cause),
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
    }
    return tuple((_ERRORS + name, text.encode()) for name, text in told.items())
