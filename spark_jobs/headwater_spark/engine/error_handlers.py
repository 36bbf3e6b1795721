"""Records that fail: the application's exception handlers, its dead letter queue, and refused output.

A broker refuses an output record after the batch is processed. The batch is then processed again, and the
production exception handler gets the record: the task knows which input record it is derived from.
"""

from collections.abc import Callable, Iterable, Iterator

from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import CurrentRecord, Headers, InputRecord, OutputRecord
from headwater_spark.engine.serdes import CompilerUnavailableError, RegistryUnavailableError
from headwater_spark.engine.stores.layers import Append

DESERIALIZATION_HANDLER = "deserialization.exception.handler"
PROCESSING_HANDLER = "processing.exception.handler"
PRODUCTION_HANDLER = "production.exception.handler"
_ERRORS = "__streams.errors."
_OWN_PACKAGE = "headwater_spark"
_CALLERS = (
    "headwater_spark.engine.operators.processors",
    "headwater_spark.engine.partitioners.static",
    "headwater_spark.engine.program.partitioning",
    "headwater_spark.engine.task_context",
    "headwater_spark.processors",
)
"""The modules that call users' code."""
Refusal = Callable[[OutputRecord], str | None]
"""Output record → why the brokers refuse it; None = they do not."""


class PoisonRecordError(Exception):
    """A record or a punctuation failed, and the exception handler's answer is to fail.

    The text names topic, partition and offset of the input record, and the cause. `handler` is the config key
    of the handler; None = no handler applies.
    """

    def __init__(self, text: str, handler: str | None = None) -> None:
        super().__init__(text)
        self.handler = handler


class ErrorHandlers:
    """Apply the exception handlers: fail, or skip the record and send it to the dead letter queue.

    `skipped` counts skipped records (`dropped-records-total`), `latest` describes the last failure.
    """

    def __init__(self, settings: EngineSettings, append: Append) -> None:
        self._settings = settings
        self._append = append
        self._answers = {
            DESERIALIZATION_HANDLER: settings.on_bad_input,
            PROCESSING_HANDLER: settings.on_processing_error,
            PRODUCTION_HANDLER: settings.on_bad_output,
        }
        self.skipped = 0
        self.latest: str | None = None

    @property
    def fails_on_processing_error(self) -> bool:
        return self._settings.on_processing_error == "fail"

    @property
    def skips_bad_input(self) -> bool:
        return self._settings.on_bad_input == "continue"

    def deserialization_failed(self, record: InputRecord, cause: Exception) -> None:
        """Apply `deserialization.exception.handler`."""
        self._handle(DESERIALIZATION_HANDLER, record, "cannot be read", cause)

    def extraction_failed(self, record: InputRecord, cause: Exception) -> None:
        """Fail: no handler applies to a timestamp extractor (`RecordQueue#updateHead`)."""
        text = _describe_record(record, "its timestamp cannot be extracted", cause)
        _raise_unhandled(cause, text)
        raise PoisonRecordError(text) from cause

    def flush_failed(self, record: InputRecord, cause: Exception) -> None:
        """Fail: an update in a record cache cannot be processed, and the ones after it are not written."""
        _raise_unhandled(cause, _describe_record(record, "cannot be processed", cause))
        handler = PROCESSING_HANDLER if self.fails_on_processing_error else None
        raise PoisonRecordError(_describe_record(record, "cannot be processed", cause), handler) from cause

    def processing_failed(self, record: InputRecord, cause: Exception) -> None:
        """Apply `processing.exception.handler` (KIP-1033)."""
        self._handle(PROCESSING_HANDLER, record, "cannot be processed", cause)

    def punctuation_failed(self, task: str, cause: Exception) -> None:
        """Apply `processing.exception.handler`; there is no record for the dead letter queue."""
        failure = f"task {task}: a punctuation failed: {describe_cause(cause)}"
        _raise_unhandled(cause, failure)
        if self._settings.on_processing_error == "fail":
            raise PoisonRecordError(failure, PROCESSING_HANDLER) from cause
        self.skipped += 1
        self.latest = failure

    def production_failed(self, record: InputRecord, topic: str, cause: Exception) -> None:
        """Apply `production.exception.handler`: a value has no bytes, or the brokers refuse the record."""
        self._handle(PRODUCTION_HANDLER, record, f"cannot be written to {topic}", cause)

    def _handle(self, handler: str, record: InputRecord, failure: str, cause: Exception) -> None:
        text = _describe_record(record, failure, cause)
        _raise_unhandled(cause, text)
        if self._answers[handler] == "fail":
            raise PoisonRecordError(text, handler) from cause
        self.skipped += 1
        self.latest = text
        if self._settings.dead_letter_topic is not None:
            _, _, _, timestamp, key, value, headers = record
            all_headers = headers + _error_headers(record, cause)
            self._append((self._settings.dead_letter_topic, None, key, value, timestamp, all_headers))


def _raise_unhandled(cause: Exception, text: str) -> None:
    """Raise an error that no handler gets, because skipping the record would be wrong.

    The record is valid, and waits for a partition, its schema or memory: the batch is retried. An endless
    recursion is an error of the program: in Java, handlers get exceptions, but no `StackOverflowError` and no
    `OutOfMemoryError` (`ProcessorNode#process`).
    """
    if isinstance(cause, TaskMigrated | RegistryUnavailableError | CompilerUnavailableError):
        raise cause
    if isinstance(cause, MemoryError):
        if text not in getattr(cause, "__notes__", ()):
            cause.add_note(text)
        raise cause
    if isinstance(cause, RecursionError):
        raise PoisonRecordError(text) from cause


def _describe_record(record: InputRecord, failure: str, cause: Exception) -> str:
    topic, partition, offset = record[:3]
    location = f"record of {topic}, partition {partition}, offset {offset}"
    return escape_surrogates(f"{location}: {failure}: {describe_cause(cause)}")


def describe_cause(cause: BaseException) -> str:
    """Return the type and the text of an exception; of users' code with the module and the line."""
    text = f"{type(cause).__name__}: {cause}".removesuffix(": ")
    line = find_user_line(_lines_of(cause))
    return text if line is None else f"{text} ({line})"


CodeLine = tuple[str, int]
"""The name of a module, and a line in it."""


def _lines_of(cause: BaseException) -> Iterator[CodeLine]:
    traceback = cause.__traceback__
    while traceback is not None:
        yield str(traceback.tb_frame.f_globals.get("__name__")), traceback.tb_lineno
        traceback = traceback.tb_next


def find_user_line(calls: Iterable[CodeLine]) -> str | None:
    """Return the last line of users' code in nested calls, outermost first; None if there is no such code.

    Libraries that users' code calls are not users' code.
    """
    found, package, caller = None, None, ""
    for module, line in calls:
        top = module.partition(".")[0]
        if caller in _CALLERS and module not in _CALLERS:
            package = top
        if top == package and module not in _CALLERS and top != _OWN_PACKAGE:
            found = f"{module}, line {line}"
        caller = module
    return found


def _error_headers(record: InputRecord, cause: Exception) -> Headers:
    """Return the headers of KIP-1034, without the stack trace."""
    topic, partition, offset = record[:3]
    values = {
        "exception": type(cause).__qualname__,
        "message": escape_surrogates(str(cause)),
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
    }
    return tuple((_ERRORS + name, text.encode()) for name, text in values.items())


def escape_surrogates(text: str) -> str:
    """Return `text` with escapes for halves of surrogate pairs, which have no UTF-8."""
    return text.encode(errors="backslashreplace").decode()


class RefusedRecordError(Exception):
    """The brokers refuse an output record."""


def no_refusal(_record: OutputRecord) -> None:
    """Refuse no record (`Refusal`)."""


class CheckedOutput:
    """Appends output records to `outputs`, except refused records, which `on_refused` gets.

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
