"""Who is told of finished expansions: a class of the operator's, or the application's static partitioner."""

from collections.abc import Callable
from threading import Thread

from spark_jobs.agent.ports import Callback

Callbacks = Callable[[str], Callback | None]
"""Application id → whom to tell; None: nobody."""

CALL_SECONDS = 30.0


def call(callback: Callback | None, old: int, new: int, seconds: float = CALL_SECONDS) -> str:
    """Call it and return the text of what it raised, if anything. One that hangs is left behind."""
    if callback is None:
        return ""
    raised: list[str] = []

    def run() -> None:
        try:
            callback.on_partition_expansion(old, new)
        except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
            raised.append(f"{type(error).__name__}: {error}")

    thread = Thread(target=run, name="on-partition-expansion", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return f"has not returned within {seconds:g} s"
    return raised[0] if raised else ""
