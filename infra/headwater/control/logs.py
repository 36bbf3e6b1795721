"""Logs of agent and runtime; secrets in them are replaced."""

import base64
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal
from urllib.parse import quote

import structlog

from headwater.control.access import TOKEN_VARIABLE

_USER_INFO = "SCHEMA_REGISTRY_USER_INFO"
"""`user:password`; the password alone is a secret, too."""
SECRET_VARIABLES: Final = (
    TOKEN_VARIABLE,
    _USER_INFO,
    "SCHEMA_REGISTRY_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)
"""Environment variables that hold a secret as a whole. `Connection` has the secrets for Kafka."""
REDACTED: Final = "***"
_SHORTEST = 4
"""Characters. A shorter secret occurs in too many texts that are not secret."""
_SHORTEST_LINE = 8
"""Characters of a line of a PEM text, for the same reason."""


def redacted_texts(secrets: Iterable[str | None], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the texts to redact, longest first: secrets as given and as encoded on their way to a server.

    `secrets` are secrets of the connection (`Connection.secrets`); None and empty texts are skipped.
    """
    known = [secret for secret in secrets if secret]
    known += [environment[name] for name in SECRET_VARIABLES if environment.get(name)]
    known.append(environment.get(_USER_INFO, "").partition(":")[2])
    texts = {
        form
        for secret in known
        for part in _secret_parts(secret)
        if len(part) >= _SHORTEST
        for form in _secret_forms(part)
    }
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def redact_text(text: str, texts: Iterable[str]) -> str:
    """Return `text` with each of `texts` (see `redacted_texts`) replaced."""
    for secret in texts:
        text = text.replace(secret, REDACTED)
    return text


def _secret_parts(secret: str) -> Iterator[str]:
    """Yield the whole secret and, of a PEM text, its lines."""
    yield from (secret, secret.strip())
    if "-----BEGIN" in secret:
        lines = (line.strip() for line in secret.splitlines())
        yield from (line for line in lines if len(line) >= _SHORTEST_LINE and "-----" not in line)


def _secret_forms(secret: str) -> Iterator[str]:
    """Yield a secret as it can occur in a text: plain, escaped, in a URL, in a header."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret, safe="")
    yield base64.b64encode(secret.encode()).decode()


LogFormat = Literal["console", "json"]
"""Lines for people, or JSON objects."""
LEVELS = ("debug", "info", "warning", "error")
_SECRET_NAMES = ("password", "secret", "token", "authorization", "private_key", "passphrase")


def configure_log(form: LogFormat = "console", level: str = "info", secrets: Sequence[str] = ()) -> None:
    """Set structlog up for the process.

    `level` is the lowest level that is logged, one of `LEVELS`. `secrets` are texts that never show
    (`redacted_texts`), wherever in a line they are.
    """
    render: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if form == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), sort_keys=False, exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,  # a text, so that secrets in it are redacted
            _Redaction(secrets),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=lambda *_: _StandardError(),
        cache_logger_on_first_use=False,
    )


class _StandardError:
    """Prints lines to standard error, and ignores that its reader has gone: the job continues without a log.

    With `spark-submit`, the reader is Spark's JVM. If it dies, the line that says so must not fail the thread
    that stops the job.
    """

    def msg(self, message: str) -> None:
        with suppress(OSError):
            print(message, file=sys.stderr, flush=True)  # noqa: T201 - this is the log

    log = debug = info = warning = error = critical = exception = msg


class _Redaction:
    """Redacts values with the name of a secret, and secrets inside texts."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets

    def __call__(self, _: object, __: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
        return {name: self._redact_value(name, value) for name, value in line.items()}

    def _redact_value(self, name: str, value: object) -> object:
        if value is not None and any(word in name.lower() for word in _SECRET_NAMES):
            return REDACTED
        match value:
            case str():
                return redact_text(value, self._secrets)
            case Mapping():
                return {key: self._redact_value(str(key), inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._redact_value("", inner) for inner in value]
            case None | bool() | int() | float():
                return value
            case _:
                return self._redact_value("", repr(value))
