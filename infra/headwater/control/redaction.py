"""The secrets that never show in a log or report: one list for agent, runtime and `headwater doctor`."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

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
"""Environment variables that hold a secret as a whole. Those of the Kafka connection are in `Connection`."""
REDACTED: Final = "***"
_SHORTEST = 4
"""Characters. A shorter secret occurs in too many texts that are not secret."""
_SHORTEST_LINE = 8
"""Characters of a line of a PEM text, for the same reason."""


def redacted_texts(secrets: Iterable[str | None], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the texts to redact, longest first: secrets as given and as encoded on their way to a server.

    Args:
        secrets: those of the connection (`Connection.secrets`); None and empty texts are skipped.
        environment: the process's environment variables.
    """
    known = [secret for secret in secrets if secret]
    known += [environment[name] for name in SECRET_VARIABLES if environment.get(name)]
    known.append(environment.get(_USER_INFO, "").partition(":")[2])
    texts = {
        form for secret in known for part in _parts(secret) if len(part) >= _SHORTEST for form in _forms(part)
    }
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def redact(text: str, texts: Iterable[str]) -> str:
    """Return `text` with each of `texts` (see `redacted_texts`) replaced."""
    for secret in texts:
        text = text.replace(secret, REDACTED)
    return text


def _parts(secret: str) -> Iterator[str]:
    """Yield the whole secret and, of a PEM text, its lines."""
    yield from (secret, secret.strip())
    if "-----BEGIN" in secret:
        lines = (line.strip() for line in secret.splitlines())
        yield from (line for line in lines if len(line) >= _SHORTEST_LINE and "-----" not in line)


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it can occur in a text: plain, escaped, in a URL, in a header."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret, safe="")
    yield base64.b64encode(secret.encode()).decode()
