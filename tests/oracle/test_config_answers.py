"""Configs are refused as Kafka's recorded answers say.

`test_configs.py` records them, and compares more values with Kafka itself.
"""

import pytest

from headwater.compiler.configs.check import find_refusals
from headwater.model.versions import SUPPORTED
from tests.oracle.config_answers import ANSWERS, answers_text, collect_answers, tried_configs


@pytest.mark.slow  # 100,000 values
def test_values_are_refused_as_recorded() -> None:
    answers = {
        version.release: collect_answers(
            version, [bool(find_refusals(configs, version)) for configs in tried_configs(version)]
        )
        for version in SUPPORTED
    }

    assert answers_text(answers) == ANSWERS.read_text(encoding="utf-8")
