"""Texts of `describe()` as users copy them from logs."""

from headwater.describe import read_description
from headwater.model.nodes import NodeTopology
from tests.describe.texts import SMALL


def read(text: str) -> NodeTopology:
    topology, problems = read_description(text, "app.txt")
    assert problems == ()
    return topology


PLAIN = read_description(SMALL)[0]


def as_log(text: str) -> str:
    prefix = "2026-03-01 12:00:00.123  INFO 1 --- [main] c.e.App : "
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())
