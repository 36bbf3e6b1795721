"""Recorded answers of Kafka: for each config one bit for each tried value, set if Kafka refuses it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from headwater.compiler.configs.table import Owner, split_key
from headwater.model.versions import SUPPORTED, KafkaStreamsVersion
from tests.oracle.config_table import find_periods
from tests.oracle.config_values import single_configs

ANSWERS = Path(__file__).parent / "config_answers.json"

Answers = Mapping[str, str]
"""`owner config` → the bits of its values as a hexadecimal number."""


def tried_configs(version: KafkaStreamsVersion) -> list[dict[str, str]]:
    """Return all single configs that are tried, in a fixed order."""
    return [{key: text} for _, key, text in _tried(version)]


def recorded_answers(version: KafkaStreamsVersion) -> Answers:
    """Return the recorded answers of a version."""
    releases = [each.release for each in SUPPORTED]
    position = releases.index(version.release)
    return {
        key: row["refused"]
        for key, rows in json.loads(ANSWERS.read_text(encoding="utf-8")).items()
        for row in rows
        if releases.index(row.get("since", releases[0]))
        <= position
        <= releases.index(row.get("until", releases[-1]))
    }


def collect_answers(version: KafkaStreamsVersion, refused: Sequence[bool]) -> Answers:
    """Return the answers of a version; configs with the prefix of a client are part of those without."""
    pairs = zip(_tried(version), refused, strict=True)
    return {
        f"{owner} {name}": f"{int(''.join(str(int(bit)) for _, bit in group), 2):x}"
        for (owner, name), group in groupby(pairs, key=lambda pair: (pair[0][0], split_key(pair[0][1])[0]))
    }


def answers_text(answers: Mapping[str, Answers]) -> str:
    """Return the answers by release as JSON: one line for each config, one row for several equal releases."""
    releases = tuple(answers)
    keys = sorted({key for of_release in answers.values() for key in of_release})
    lines = (
        f"{json.dumps(key)}: "
        + json.dumps(
            list(
                find_periods(
                    [
                        {"refused": of_release[key]} if key in of_release else None
                        for of_release in answers.values()
                    ],
                    releases,
                )
            )
        )
        for key in keys
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _tried(version: KafkaStreamsVersion) -> Iterator[tuple[Owner, str, str]]:
    return ((owner, key, text) for owner in Owner for key, text in single_configs(owner, version))
