"""Failures as text, from when they happen.

Py4J asks Spark's JVM for the text of a Java exception. A JVM that hangs never answers, so each text is read
once, with a limit; whatever reads a failure later calls no JVM. `failures` starts no thread: it only decides.
"""

from threading import Thread

from headwater_spark.driver.failures import Failure

_TEXT_SECONDS = 2.0


def capture_failure(exception: BaseException, seconds: float = _TEXT_SECONDS) -> Failure:
    """Return the failure; without an answer of the JVM in `seconds`, its text is the name of its class."""
    texts: list[str] = []

    def read() -> None:
        try:
            texts.append(str(exception))
        except Exception:  # noqa: BLE001 - the JVM may have ended, and the connection may fail in any way
            texts.append(type(exception).__name__)

    # A thread that the JVM never answers keeps a connection of its own, and ends with the process.
    thread = Thread(target=read, name="failure-text", daemon=True)
    thread.start()
    thread.join(seconds)
    unknown = f"{type(exception).__name__}: no text, because Spark's JVM did not answer"
    return Failure(exception=exception, text=texts[0] if texts else unknown)


def failure_reason(exception: BaseException) -> str:
    """Return the message without tracebacks; takes two seconds at most."""
    return capture_failure(exception).reason
