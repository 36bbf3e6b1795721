"""Logs as people or programs read them: console or JSON lines on standard error, without secrets."""

import logging
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, Literal

import structlog

Form = Literal["console", "json"]
_LEVELS: Mapping[str, int] = logging.getLevelNamesMapping()
_HIDDEN = "***"
_SECRET_NAMES = ("password", "secret", "token", "authorization", "private_key", "passphrase")
_SHORTEST = 4
"""A secret that is shorter is found in too much that is none."""


def configure(form: Form = "console", level: str = "info", secrets: Iterable[str | None] = ()) -> None:
    """Set structlog up for the process. `secrets` never show, wherever in a line they turn up."""
    render: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if form == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), sort_keys=False, exception_formatter=structlog.dev.plain_traceback
        )
    )
    known = tuple(secret for secret in secrets if secret and len(secret) >= _SHORTEST)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,  # a text, so that secrets are found in it
            _Concealing(known),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level.upper()]),
        # Asked for at each line: whoever shows a table meanwhile takes standard error over.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


class _Concealing:
    """Replaces what stands under the name of a secret, and known secrets inside texts."""

    def __init__(self, known: tuple[str, ...]) -> None:
        self._known = known

    def __call__(self, _: object, __: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
        return {name: self._concealed(name, value) for name, value in line.items()}

    def _concealed(self, name: str, value: object) -> object:
        if value is not None and any(word in name.lower() for word in _SECRET_NAMES):
            return _HIDDEN
        match value:
            case str():
                for secret in self._known:
                    value = value.replace(secret, _HIDDEN)
                return value
            case Mapping():
                return {key: self._concealed(str(key), inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._concealed("", inner) for inner in value]
            case None | bool() | int() | float():
                return value
            case _:
                return self._concealed("", repr(value))
