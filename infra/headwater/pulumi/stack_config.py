"""Typed access to the `headwater:` keys of `Pulumi.<stack>.yaml`; unreadable values become problems."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import attrs

from headwater.model.problems import Location, Problem, ProblemCode, Severity
from headwater.spec.phrases import nearest_word

Value = TypeVar("Value")

NAMESPACE = "headwater:"
"""What the keys of Headwater begin with in the configuration of a stack."""
SECRETS = frozenset({"saslPassword", "clientKey", "clientKeyPassphrase"})


@attrs.frozen
class ResourceInputs:
    """Settings that a program passes as inputs of a resource: its name, key → text, and which are secrets."""

    name: str = ""
    values: Mapping[str, str] = attrs.field(factory=dict)
    secrets: Collection[str] = ()


_NO_INPUTS = ResourceInputs()


def select_own_keys(config: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return key without namespace → value of the keys of Headwater in the configuration of a stack."""
    return {key.removeprefix(NAMESPACE): value for key, value in config.items() if key.startswith(NAMESPACE)}


class StackConfig:
    """Typed access to `values` (key without namespace → text from Pulumi); collects `problems`.

    `inputs` replace values of the same key, and are named in problems as inputs.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        *,
        secrets: Collection[str],
        file: str,
        inputs: ResourceInputs = _NO_INPUTS,
    ) -> None:
        self._values = {**values, **inputs.values}
        self._inputs = inputs
        self.file = file
        secret = {key for key in secrets if key not in inputs.values} | set(inputs.secrets)
        self.problems: list[Problem] = [
            self.problem(
                key,
                f"{key} is a secret, but {self.location_of(key).file} contains it in plain text.",
                expected="a secret",
                found="plain text",
                fix=_INPUT_FIX.format(key)
                if key in inputs.values
                else f"Run `pulumi config set --secret headwater:{key}`, and change the secret itself if the "
                "file was shared.",
                severity=Severity.WARNING,
            )
            for key in sorted(SECRETS & self._values.keys() - secret)
        ]

    def label(self, key: str) -> str:
        """Return how problems name a key: as an input, or with its namespace."""
        return key if self._is_input(key) else f"{NAMESPACE}{key}"

    def location_of(self, key: str) -> Location:
        path = key.replace(".", "/")
        if self._is_input(key):
            return Location(f"resource {self._inputs.name}", pointer=f"/properties/{path}")
        return Location(self.file, pointer=f"/config/{NAMESPACE}{path}")

    def _is_input(self, key: str) -> bool:
        return key.partition(".")[0] in self._inputs.values

    def check_keys(self, allowed: Collection[str]) -> None:
        for key in sorted(self._values.keys() - set(allowed)):
            self.problems.append(self.unknown(key, allowed, what="a setting of Headwater"))

    def text(self, key: str) -> str | None:
        return self._values.get(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the items of a JSON list, or of a list separated by commas."""
        value = self._values.get(key, "")
        if value.startswith("["):
            items = self._read(key, _list_of_strings, "a list of strings") or []
            return tuple(items)
        return tuple(part.strip() for part in value.split(",") if part.strip())

    def count(self, key: str) -> int | None:
        return self._read(key, _parse_count, "a whole number, 0 or more")

    def mapping(self, key: str) -> Mapping[str, Any]:
        return self._read(key, _parse_mapping, "a mapping") or {}

    def _read(self, key: str, read: Callable[[str], Value], expected: str) -> Value | None:
        value = self._values.get(key)
        if value is None:
            return None
        try:
            return read(value)
        except ValueError:
            self.problems.append(self.invalid(key, expected, value))
            return None

    def invalid(self, key: str, expected: str, found: str) -> Problem:
        return self.problem(
            key,
            f"{self.label(key)} is not {expected}.",
            expected=expected,
            found=found,
            fix=f"Correct {self.label(key)}.",
        )

    def unknown(self, key: str, allowed: Collection[str], *, what: str) -> Problem:
        meant = nearest_word(key.rpartition(".")[2], allowed)
        return self.problem(
            key,
            f"{self.label(key)} is not {what}." + (f" Did you mean {meant}?" if meant else ""),
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
            why="Headwater does not run with settings that it cannot read."
            if severity is Severity.ERROR
            else "Everyone who can read the file or its history can access the cluster with it.",
            fix=fix,
            location=self.location_of(key),
            severity=severity,
        )


_INPUT_FIX = (
    "Pass {} as a secret of your language's SDK (`pulumi.secret`, `fn::secret`), or set it with "
    "`pulumi config set --secret`."
)


def _parse_count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _list_of_strings(text: str) -> list[str]:
    items = json.loads(text)
    if not all(isinstance(item, str) for item in items):
        raise ValueError(text)
    return list(items)


def _parse_mapping(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(text)  # noqa: TRY004 - reported to the user like any other invalid value
    return value
