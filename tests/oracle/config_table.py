"""Generate `compiler/configs/kafka_configs.json` from the `ConfigDef`s of all supported versions."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Tables = Mapping[str, Mapping[str, Mapping[str, Any]]]

CLIENTS = ("streams", "consumer", "producer", "admin")
_OR_ANOTHER = re.compile(r"\[(-?\d+),\.\.\.,(-?\d+)\] or (-?\d+)")
_ANY_CASE = {"share.acquire.mode"}
"""Its validator is a class of its own, which changes the value to upper case."""
_MOST = 2**31 - 1


def generated(tables: Mapping[str, Tables]) -> str:
    """Return the JSON text of the tables by release: one line for each config of each client.

    A config has a row for each range of releases in which it is the same: `since` and `until` are the first
    and last of them, absent if they are the first or last supported release.
    """
    releases = tuple(tables)
    parts = [f'"releases": {json.dumps(releases)}']
    for client in CLIENTS:
        keys = sorted({key for of_release in tables.values() for key in of_release[client]})
        lines = (
            f"  {json.dumps(key)}: "
            + json.dumps(
                list(find_periods([_row(tables[release][client], key) for release in releases], releases))
            )
            for key in keys
        )
        parts.append(f'"{client}": {{\n' + ",\n".join(lines) + "\n}")
    rules = list(
        find_periods([dict(sorted(tables[release]["rules"].items())) for release in releases], releases)
    )
    parts.append('"rules": [\n  ' + ",\n  ".join(json.dumps(rule, sort_keys=True) for rule in rules) + "\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def find_periods(
    rows: Sequence[Mapping[str, Any] | None], releases: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield each different row with the range of releases that have it."""
    first = 0
    for index, row in enumerate(rows):
        if index + 1 == len(rows) or rows[index + 1] != row:
            if row is not None:
                since = {} if first == 0 else {"since": releases[first]}
                until = {} if index + 1 == len(rows) else {"until": releases[index]}
                yield {**since, **until, **row}
            first = index + 1


def _row(table: Mapping[str, Mapping[str, Any]], key: str) -> Mapping[str, Any] | None:
    row = table.get(key)
    if row is None:
        return None
    default = row.get("default")
    return {
        "type": str(row["type"]).lower(),
        **({} if default is None else {"default": default}),
        **find_limits(key, row["validator"], default or ""),
        **({"deprecated": True} if row["deprecated"] else {}),
    }


def find_limits(key: str, validator: Mapping[str, Any] | None, default: str) -> Mapping[str, Any]:
    if validator is None:
        return {}
    if key == "topology.optimization":
        return {"form": "optimizations"}
    of_class = _OF_CLASS.get(validator["class"])
    if of_class is not None:
        return of_class(validator, default)
    text = str(validator["text"])
    if text.endswith(", by_duration:PnDTnHnMn.nS]"):
        return {"values": ["latest", "earliest", "none"], "form": "offset reset"}
    if validator["class"] == "Validator":
        return {"values": text[1:-1].split(", "), **({"any_case": True} if key in _ANY_CASE else {})}
    if found := _OR_ANOTHER.fullmatch(text):
        least, most, extra = map(int, found.groups())
        return {"least": least, "most": most, "extra": [extra]}
    raise ValueError(f"a validator without a translation: {key} {validator}")


def _range(validator: Mapping[str, Any], _: str) -> Mapping[str, Any]:
    limits = (("least", validator.get("min")), ("most", validator.get("max")))
    return {name: limit for name, limit in limits if limit is not None and (name, limit) != ("most", _MOST)}


def _words(validator: Mapping[str, Any], _: str) -> Mapping[str, Any]:
    return {"values": [word for word in validator["validStrings"] if word is not None]}


def _words_in_any_case(validator: Mapping[str, Any], default: str) -> Mapping[str, Any]:
    words = sorted(validator["validStrings"])
    # the set of the validator is in upper case; the default shows the usual form
    return {"values": words if default.isupper() else [word.lower() for word in words], "any_case": True}


def _list_of_words(validator: Mapping[str, Any], _: str) -> Mapping[str, Any]:
    words = validator["validString"]["validStrings"]
    return {
        **({"values": words} if words else {}),
        # since 4.2
        **({"full_items": True} if "isEmptyAllowed" in validator else {}),
        **({} if validator.get("isEmptyAllowed", True) else {"nonempty": True}),
    }


_OF_CLASS: Mapping[str, Callable[[Mapping[str, Any], str], Mapping[str, Any]]] = {
    "Range": _range,
    "ValidString": _words,
    "CaseInsensitiveValidString": _words_in_any_case,
    "NonEmptyString": lambda *_: {"nonempty": True},
    "ListSize": lambda validator, _: {"most_items": validator["maxSize"]},
    "NonNullValidator": lambda *_: {},  # a text is not null
    "ValidList": _list_of_words,
    # before 4.4 the constructor of `KafkaStreams` refuses the same values: `configs/combinations.py`
    "ApplicationServerConfigValidator": lambda *_: {},
}
