"""Recorded answers of Kafka: for each version and config one bit for each tried value, set if refused."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from infra.compiler.configs.table import Owner
from infra.model.versions import KafkaStreamsVersion
from tests.oracle.config_values import single_configs

ANSWERS = Path(__file__).parent / "config_answers.json"


def tried_configs(version: KafkaStreamsVersion) -> list[dict[str, str]]:
    """Return all single configs that are tried, in a fixed order."""
    return [{key: text} for _, key, text in _tried(version)]


def recorded_answers(version: KafkaStreamsVersion, refused: Sequence[bool]) -> Mapping[str, str]:
    """Return `owner config` → the bits of its values as a hexadecimal number."""
    pairs = zip(_tried(version), refused, strict=True)
    return {
        f"{owner} {key}": f"{int(''.join(str(int(bit)) for _, bit in group), 2):x}"
        for (owner, key), group in groupby(pairs, key=lambda pair: pair[0][:2])
    }


def _tried(version: KafkaStreamsVersion) -> Iterator[tuple[Owner, str, str]]:
    return ((owner, key, text) for owner in Owner for key, text in single_configs(owner, version))
