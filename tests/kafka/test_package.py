"""The package imports the client of Kafka only when a name that needs it is used."""

import subprocess
import sys
from operator import attrgetter

import pytest

import headwater.kafka


@pytest.mark.parametrize("name", headwater.kafka.__all__)
def test_each_name_can_be_imported_and_is_listed(name: str) -> None:
    assert getattr(headwater.kafka, name).__name__ == name
    assert name in dir(headwater.kafka)


def test_names_are_listed_before_they_are_used() -> None:
    program = (
        "import sys, headwater.kafka\n"
        "print(*dir(headwater.kafka))\n"
        "assert 'confluent_kafka' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(headwater.kafka.__all__) <= set(done.stdout.split())


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'headwater\.kafka' has no attribute 'reed'$"):
        attrgetter("reed")(headwater.kafka)
