"""Texts of `Topology#describe()`, complete and damaged."""

import random
import re
from pathlib import Path

from headwater.describe import read_description
from headwater.model.nodes import NodeTopology

CASES = Path(__file__).parent.parent / "oracle" / "cases"

SMALL = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-KEY-SELECT-0000000001
    Processor: KSTREAM-KEY-SELECT-0000000001 (stores: [])
      --> KSTREAM-FILTER-0000000005
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-FILTER-0000000005 (stores: [])
      --> KSTREAM-SINK-0000000004
      <-- KSTREAM-KEY-SELECT-0000000001
    Sink: KSTREAM-SINK-0000000004 (topic: KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition)
      <-- KSTREAM-FILTER-0000000005

  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000006 (topics: [KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition])
      --> KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [KSTREAM-AGGREGATE-STATE-STORE-0000000002])
      --> none
      <-- KSTREAM-SOURCE-0000000006

"""


def recorded_texts() -> dict[str, str]:
    """Return case → text."""
    return {path.parent.name: path.read_bytes().decode() for path in sorted(CASES.glob("*/describe.txt"))}


def shuffled(text: str, seed: int) -> str:
    """Return the same description with every list in another order."""
    chance = random.Random(seed)  # noqa: S311 (an order, no secret)

    def reorder(found: re.Match[str]) -> str:
        names = found[2].split(", ")
        chance.shuffle(names)
        return found[1] + ", ".join(names) + found[3]

    arrows = re.sub(r"(?m)^(\s+(?:-->|<--) )(.+)()$", reorder, text)
    return re.sub(r"(?m)((?:topics|stores): \[)(.*)(\]\))$", reorder, arrows)


def read(text: str) -> NodeTopology:
    topology, problems = read_description(text, "app.txt")
    assert problems == ()
    return topology


PLAIN = read_description(SMALL)[0]


def as_log(text: str) -> str:
    prefix = "2026-03-01 12:00:00.123  INFO 1 --- [main] c.e.App : "
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())
