"""`headwater import` of texts that each version of Kafka Streams printed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Headwater

_RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "describe" / "recorded" / "versions.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("recorded", _RECORDED, ids=lambda each: f"{each['topology']}-{each['versions'][0]}")
def test_text_of_a_version_is_imported(
    headwater: Headwater, tmp_path: Path, recorded: dict[str, Any]
) -> None:
    (tmp_path / "describe.txt").write_text(recorded["text"], encoding="utf-8")
    version = recorded["versions"][0]
    headwater(
        *("import", "--describe", "describe.txt", "--application-id", "app", "--kafka-streams", version),
        *("-o", "app.yaml"),
    )
    written = yaml.safe_load((tmp_path / "app.yaml").read_text(encoding="utf-8"))
    assert written["application"]["kafkaStreams"] == version
    assert headwater("describe", "app.yaml").stdout_bytes.decode() == recorded["text"]
