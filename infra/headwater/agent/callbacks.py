"""The callback after an expansion: a class that a user names, or the application's static partitioner."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from threading import Thread

from headwater.agent.ports import Callback, Documents
from headwater.compiler import StreamsConfig
from headwater.model.problems import Problem, ProblemCode, ProblemsError

Callbacks = Callable[[str], Callback | None]
"""Application id → its callback; None = it has none. Raises `ProblemsError` if the class cannot be loaded."""

CALL_SECONDS = 30.0
_LONGEST_TEXT = 1_000
"""Characters of an error, which a journal entry contains: brokers refuse large records."""


def callbacks_of(name: str | None, documents: Documents) -> Callbacks:
    """Return the callbacks: the class `name` for all, else the static partitioner class of each application.

    Only Python classes (`module:Class`) are called: built-in partitioners need no callback, and Java classes
    cannot be called. Raises `ProblemsError` (InvalidConfig) if `name` cannot be loaded.
    """
    if name is not None:
        callback = _load_callback(name)
        return lambda _: callback
    loaded: dict[str, Callback] = {}

    def find_callback(application: str) -> Callback | None:
        configs = (
            StreamsConfig.from_application(document.application)
            for document in documents.current()
            if document.application.id == application
        )
        partitioner = next((config.static_partitioner for config in configs), None)
        if partitioner is None or ":" not in partitioner:
            return None
        if partitioner not in loaded:
            loaded[partitioner] = _load_callback(partitioner)
        return loaded[partitioner]

    return find_callback


def call_callback(
    callbacks: Callbacks, application: str, old: int, new: int, seconds: float = CALL_SECONDS
) -> str:
    """Call the callback of an application and return its error, empty if there is none.

    The wait ends after `seconds`; a callback that hangs keeps its thread.
    """
    raised: list[str] = []

    def run() -> None:
        try:
            callback = callbacks(application)
            if callback is not None:
                callback.on_partition_expansion(old, new)
        except ProblemsError as error:
            texts = (f"{problem.summary} {problem.found}" for problem in error.problems)
            raised.append(_shorten_text("; ".join(texts)))
        except BaseException as error:  # noqa: BLE001 - of a class of a user, also SystemExit
            raised.append(_error_text(error))

    thread = Thread(target=run, name="on-partition-expansion", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return f"did not return within {seconds:g} s"
    return raised[0] if raised else ""


def _error_text(error: BaseException) -> str:
    try:
        text = f": {error}"
    except Exception:  # noqa: BLE001 - of a class of a user
        text = ""
    return _shorten_text(f"{type(error).__name__}{text}")


def _shorten_text(text: str) -> str:
    """Return a text that a journal entry can contain: short, and without halves of surrogate pairs."""
    return text[:_LONGEST_TEXT].encode(errors="backslashreplace").decode()


def _load_callback(name: str) -> Callback:
    """Return an object of the class `module:Class`; raises `ProblemsError` (InvalidConfig)."""
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        made: Callback = getattr(import_module(module), attribute)()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - of a module of a user, also SystemExit
        raise ProblemsError([_unloadable_callback(name, _error_text(error))]) from None
    if not callable(getattr(made, "on_partition_expansion", None)):
        raise ProblemsError([_unloadable_callback(name, "no method on_partition_expansion")])
    return made


def _unloadable_callback(name: str, found: str) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"The callback {name} cannot be called.",
        expected="module:Class, with a constructor without arguments and on_partition_expansion(old, new)",
        found=found,
        why="No client would learn that an expansion has ended.",
        fix="Correct the name, or put the module on PYTHONPATH where the agent runs.",
    )
