"""The hash of Kafka's default partitioner, compared with recorded hashes, for one key and many."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.partitioners.hashing import default_partition, murmur2, positive_hash
from headwater_spark.engine.scaling.transfers import positive_hashes

RECORDED = json.loads((Path(__file__).parents[3] / "oracle" / "partitioner.json").read_text())["rows"]


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: f"{row['format']}-{row['key']}")
def test_partitions_equal_those_of_kafka(row: dict[str, Any]) -> None:
    key = base64.b64decode(row["base64"])
    assert murmur2(key) == row["murmur2"]
    assert {count: default_partition(key, int(count)) for count in row["partitions"]} == row["partitions"]


def test_many_recorded_keys_have_the_hashes_of_kafka() -> None:
    keys = [base64.b64decode(row["base64"]) for row in RECORDED]
    assert positive_hashes(keys).tolist() == [row["murmur2"] & 0x7FFFFFFF for row in RECORDED]


@given(st.lists(st.binary(max_size=20)))
def test_many_keys_have_the_same_hashes_as_single_ones(keys: list[bytes]) -> None:
    assert positive_hashes(keys).tolist() == [positive_hash(key) for key in keys]
