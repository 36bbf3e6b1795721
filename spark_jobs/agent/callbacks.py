"""Who is told of finished expansions: a class of the operator's, or the application's static partitioner."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from threading import Thread

from infra.compiler import StreamsConfig
from infra.model.problems import Problem, ProblemCode, ProblemsError
from spark_jobs.agent.ports import Callback, Documents

Callbacks = Callable[[str], Callback | None]
"""Application id → whom to tell; None: nobody. Raises `ProblemsError` when that cannot be made."""

CALL_SECONDS = 30.0


def callbacks_of(name: str | None, documents: Documents) -> Callbacks:
    """Return whom to tell: the class `name` for all, else the application's own static partitioner class.

    Raises `ProblemsError` (InvalidConfig) when `name` cannot be made. Built-in partitioners have nothing to
    be told, and classes of Kafka Streams applications cannot be called from here.
    """
    if name is not None:
        callback = loaded(name)
        return lambda _: callback
    made: dict[str, Callback] = {}

    def own(application: str) -> Callback | None:
        configs = (
            StreamsConfig.of(document.application)
            for document in documents.current()
            if document.application.id == application
        )
        partitioner = next((config.static_partitioner for config in configs), None)
        if partitioner is None or ":" not in partitioner:
            return None
        if partitioner not in made:
            made[partitioner] = loaded(partitioner)
        return made[partitioner]

    return own


def call(callbacks: Callbacks, application: str, old: int, new: int, seconds: float = CALL_SECONDS) -> str:
    """Tell who is to be told and return what went wrong, if anything. One that hangs is left behind."""
    raised: list[str] = []

    def run() -> None:
        try:
            callback = callbacks(application)
            if callback is not None:
                callback.on_partition_expansion(old, new)
        except ProblemsError as error:
            raised.append("; ".join(f"{problem.summary} {problem.found}" for problem in error.problems))
        except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
            raised.append(f"{type(error).__name__}: {error}")

    thread = Thread(target=run, name="on-partition-expansion", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return f"has not returned within {seconds:g} s"
    return raised[0] if raised else ""


def loaded(name: str) -> Callback:
    """Return an object of the class `module:Class`; raises `ProblemsError` (InvalidConfig)."""
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        made: Callback = getattr(import_module(module), attribute)()
    except Exception as error:  # noqa: BLE001 - whatever the module does when it is imported
        raise ProblemsError([_unloadable(name, f"{type(error).__name__}: {error}")]) from None
    if not callable(getattr(made, "on_partition_expansion", None)):
        raise ProblemsError([_unloadable(name, "no method on_partition_expansion")])
    return made


def _unloadable(name: str, found: str) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"{name} cannot be told of expansions.",
        expected="module:Class, made without arguments, with on_partition_expansion(old, new)",
        found=found,
        why="Whoever waits for an expansion to be over would wait in vain.",
        fix="Correct the name, or put the module on PYTHONPATH where the agent runs.",
    )
