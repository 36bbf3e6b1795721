"""Handling of records that fail: the application's exception handlers and its dead letter queue."""

from spark_jobs.runtime.engine.partitioners.static import TaskMigrated
from spark_jobs.runtime.engine.program_interface import EngineSettings
from spark_jobs.runtime.engine.records import Headers, InputRecord
from spark_jobs.runtime.engine.serdes import RegistryUnavailableError
from spark_jobs.runtime.engine.stores.layers import Append

_ERRORS = "__streams.errors."


class PoisonRecordError(Exception):
    """A record or a punctuation failed, and the exception handler's answer is to fail.

    The text names topic, partition and offset of the input record, and the cause.
    """

    @classmethod
    def of(cls, record: InputRecord, failure: str, cause: Exception) -> "PoisonRecordError":
        topic, partition, offset = record[:3]
        location = f"record of {topic}, partition {partition}, offset {offset}"
        return cls(f"{location}: {failure}: {type(cause).__name__}: {cause}")


class ErrorHandlers:
    """Apply the exception handlers: fail, or skip the record and send it to the dead letter queue.

    `skipped` counts skipped records (`dropped-records-total`), `latest` describes the last failure.
    """

    def __init__(self, settings: EngineSettings, append: Append) -> None:
        self._settings = settings
        self._append = append
        self.skipped = 0
        self.latest: str | None = None

    @property
    def fails_on_processing_error(self) -> bool:
        return self._settings.on_processing_error == "fail"

    def deserialization_failed(self, record: InputRecord, cause: Exception) -> None:
        """Apply `deserialization.exception.handler`."""
        self._handle(self._settings.on_bad_input, record, "cannot be read", cause)

    def processing_failed(self, record: InputRecord, cause: Exception) -> None:
        """Apply `processing.exception.handler` (KIP-1033)."""
        self._handle(self._settings.on_processing_error, record, "cannot be processed", cause)

    def punctuation_failed(self, task: str, cause: Exception) -> None:
        """Apply `processing.exception.handler`; there is no record for the dead letter queue."""
        failure = f"task {task}: a punctuation failed: {type(cause).__name__}: {cause}"
        if self._settings.on_processing_error == "fail":
            raise PoisonRecordError(failure) from cause
        self.skipped += 1
        self.latest = failure

    def serialization_failed(self, record: InputRecord, topic: str, cause: Exception) -> None:
        """Apply `production.exception.handler`."""
        self._handle(self._settings.on_bad_output, record, f"cannot be written to {topic}", cause)

    def _handle(self, answer: str, record: InputRecord, failure: str, cause: Exception) -> None:
        if isinstance(cause, TaskMigrated | RegistryUnavailableError):
            raise cause  # the record is valid: it waits for a partition, or for its schema
        if answer == "fail":
            raise PoisonRecordError.of(record, failure, cause) from cause
        self.skipped += 1
        self.latest = str(PoisonRecordError.of(record, failure, cause))
        if self._settings.dead_letter_topic is not None:
            _, _, _, timestamp, key, value, headers = record
            all_headers = headers + _error_headers(record, cause)
            self._append((self._settings.dead_letter_topic, None, key, value, timestamp, all_headers))


def _error_headers(record: InputRecord, cause: Exception) -> Headers:
    """Return the headers of KIP-1034, without the stack trace."""
    topic, partition, offset = record[:3]
    values = {
        "exception": type(cause).__qualname__,
        "message": str(cause),
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
    }
    return tuple((_ERRORS + name, text.encode()) for name, text in values.items())
