"""The `headwater:` keys of `Pulumi.<stack>.yaml`, read one by one; what cannot be read becomes a problem."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from infra.model.problems import Location, Problem, ProblemCode, Severity
from infra.spec.spelling import nearest

Value = TypeVar("Value")

SECRETS = frozenset({"saslPassword", "clientKey", "clientKeyPassphrase"})


class StackConfig:
    """Typed access to `values`, key without namespace → text as Pulumi hands it over; collects problems."""

    def __init__(self, values: Mapping[str, str], *, secrets: Collection[str], file: str) -> None:
        self._values = values
        self.file = file
        self.problems: list[Problem] = [
            self.problem(
                key,
                f"{key} is a secret and stands in {file} for everybody to read.",
                expected="a secret",
                found="plain text",
                fix=f"Run `pulumi config set --secret headwater:{key}`, and change the secret itself if the "
                "file was shared.",
                severity=Severity.WARNING,
            )
            for key in sorted(SECRETS & values.keys() - set(secrets))
        ]

    def check_keys(self, allowed: Collection[str]) -> None:
        for key in sorted(self._values.keys() - set(allowed)):
            self.problems.append(self.unknown(key, allowed, what="a setting of Headwater"))

    def text(self, key: str) -> str | None:
        return self._values.get(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list, or the parts of a text between commas."""
        value = self._values.get(key, "")
        if value.startswith("["):
            items = self._read(key, _list_of_texts, "a list of texts") or []
            return tuple(items)
        return tuple(part.strip() for part in value.split(",") if part.strip())

    def count(self, key: str) -> int | None:
        return self._read(key, _count, "a whole number, 0 or more")

    def mapping(self, key: str) -> Mapping[str, Any]:
        return self._read(key, _mapping, "a mapping") or {}

    def _read(self, key: str, read: Callable[[str], Value], expected: str) -> Value | None:
        value = self._values.get(key)
        if value is None:
            return None
        try:
            return read(value)
        except ValueError:
            self.problems.append(self.unfit(key, expected, value))
            return None

    def unfit(self, key: str, expected: str, found: str) -> Problem:
        return self.problem(
            key,
            f"headwater:{key} is not {expected}.",
            expected=expected,
            found=found,
            fix=f"Correct headwater:{key}.",
        )

    def unknown(self, key: str, allowed: Collection[str], *, what: str) -> Problem:
        meant = nearest(key.rpartition(".")[2], allowed)
        return self.problem(
            key,
            f"headwater:{key} is not {what}." + (f" Did you mean {meant}?" if meant else ""),
            expected=f"one of {', '.join(sorted(allowed))}" if allowed else "none",
            found=key.rpartition(".")[2],
            fix=f"Rename it to {meant}." if meant else "Remove it.",
        )

    def problem(
        self,
        key: str,
        summary: str,
        *,
        expected: str,
        found: str,
        fix: str,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        return Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary=summary,
            expected=expected,
            found=found,
            why="A run must do what its settings say, so it does nothing while they are in doubt."
            if severity is Severity.ERROR
            else "Whoever can read the file, or its history, can use the cluster in your name.",
            fix=fix,
            location=Location(self.file, pointer=f"/config/headwater:{key.replace('.', '/')}"),
            severity=severity,
        )


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _list_of_texts(text: str) -> list[str]:
    items = json.loads(text)
    if not all(isinstance(item, str) for item in items):
        raise ValueError(text)
    return list(items)


def _mapping(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(text)  # noqa: TRY004 - told to the user like any other unfit value
    return value
