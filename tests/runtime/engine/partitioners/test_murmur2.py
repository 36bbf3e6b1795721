import base64
import json
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.runtime.engine.partitioners.murmur2 import default_partition, murmur2

RECORDED = json.loads((Path(__file__).parents[3] / "oracle" / "partitioner.json").read_text())["rows"]


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: f"{row['format']}-{row['key']}")
def test_partitions_equal_those_of_kafka(row: dict[str, Any]) -> None:
    key = base64.b64decode(row["base64"])
    assert murmur2(key) == row["murmur2"]
    assert {count: default_partition(key, int(count)) for count in row["partitions"]} == row["partitions"]
