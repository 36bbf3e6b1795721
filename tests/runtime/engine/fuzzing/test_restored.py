"""Random topologies, batches and caches: state restored from changelogs leads to the same records.

The changelogs are restored as they were written, or compacted.
"""

import os
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import settings

from headwater.model.nodes import SourceNode
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.task import PoisonRecordError
from tests.runtime.engine.fuzzing.test_rounds import VERSIONS, Situation, rounds_of

_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "700"))
_QUICK = 6 * settings().max_examples // 5
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1000"))
Outputs = Mapping[str, Sequence[OutputRecord]]


_OMITTED = frozenset({"logging", "timestamp"})
"""Options of steps that make restored state another one, as in Kafka Streams: stores without a changelog, and
timestamps of tables whose source topic is the changelog (`reuse.ktable.source.topics`): it is restored with
the timestamps of its records, also records that a negative timestamp has dropped."""


def _restorable(part: Any) -> Any:  # noqa: ANN401 - a part of a document
    """Return a part of a document without these options."""
    if isinstance(part, dict):
        return {key: _restorable(each) for key, each in part.items() if key not in _OMITTED}
    return list(map(_restorable, part)) if isinstance(part, list) else part


def _outputs(situation: Situation, restored_before: int, *, compacts: bool) -> list[Outputs]:
    """Return what each batch writes; before a batch, state is restored."""
    rounds = rounds_of(_restorable(situation.document))
    found: list[Outputs] = []
    try:
        rounds.start()
        for number, batch in enumerate(situation.batches):
            if number == restored_before:
                rounds.restore(compacts=compacts)
            by_topic: defaultdict[str, list[OutputRecord]] = defaultdict(list)
            for output in rounds.process(batch):
                by_topic[output[0]].append(output)
            found.append(dict(by_topic))
    except PoisonRecordError as error:
        found.append({str(error): []})
    return found


def _is_refused(situation: Situation) -> bool:
    """Return whether two sources read a topic: Kafka Streams and `headwater validate` refuse this."""
    programs = rounds_of(situation.document).programs
    sources = [node for each in programs for node in each.nodes if isinstance(node, SourceNode)]
    topics = [topic for node in sources for topic in node.topics]
    return len(topics) > len(set(topics))


def _check(seed: int) -> None:
    situation = Situation.of(seed, VERSIONS[-1], has_rare_calls=True)
    if _is_refused(situation):
        return
    chance = random.Random(f"restored {seed}")  # noqa: S311 - the same in each run
    before = chance.randrange(1, max(2, len(situation.batches)))
    compacts = "versioned" not in str(situation.document) and chance.random() < 1 / 2
    straight = _outputs(situation, -1, compacts=False)
    restored = _outputs(situation, before, compacts=compacts)
    steps = "\n".join(map(str, situation.document["topology"]))
    about = f"seed {seed}, before batch {before}, {compacts=}, {situation.cache_bytes} bytes\n{steps}"
    for number, (one, other) in enumerate(zip(restored, straight, strict=False)):
        for topic in sorted(one.keys() | other.keys()):
            assert one.get(topic) == other.get(topic), f"batch {number}, {topic}: {about}"
    assert len(restored) == len(straight), about


def test_restored_state_leads_to_the_same_records() -> None:
    for seed in range(_QUICK):
        _check(seed)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_restored_state_leads_to_the_same_records_for_long() -> None:
    for seed in range(_FIRST, _FIRST + _LONG):
        _check(seed)
