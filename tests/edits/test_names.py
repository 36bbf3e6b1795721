"""The advised lines, written into random documents: they keep what the report says, and lose nothing else."""

import random

import pytest
from hypothesis import settings

from headwater.planner.edits import Topologies, Verdict, find_edit
from tests.oracle.edits.judge import compiled_side, with_lines
from tests.oracle.edits.random_edits import random_edit
from tests.oracle.random_topologies.stores import Choices

_VERSION = "4.3.1"
_EDITS = 8 * settings().max_examples // 5


def _lost(before: Topologies, after: Topologies) -> set[str]:
    """Return the topics before the edit whose state or records do not reach the topology afterwards."""
    (found,) = find_edit(before, after).applications
    return {
        topic.former
        for topic in found.topics
        if topic.former is not None
        and (topic.verdict is Verdict.RENAMED or (topic.verdict is Verdict.RESET and topic.loses_data))
    }


@pytest.mark.parametrize("part", range(4))
def test_the_lines_keep_the_topics_that_they_name_and_no_other_topic_is_lost(part: int) -> None:
    followed = 0
    for seed in range(part * _EDITS, (part + 1) * _EDITS):
        edit = random_edit(Choices(random.Random(seed).randrange), "app")  # noqa: S311 - a repeatable example
        before, after = (
            compiled_side(document, edit.partitions, _VERSION) for document in (edit.before, edit.after)
        )
        if before is None or after is None:
            continue
        for predicted in find_edit(before, after).applications:
            if not predicted.lines:
                continue
            named = compiled_side(with_lines(edit.after, predicted), edit.partitions, _VERSION)
            assert named is not None, f"seed {seed}: the document with the lines has errors"
            kept = {line.topic for line in predicted.lines}
            lost = _lost(before, named)
            assert not kept & lost, f"seed {seed}: {kept & lost}"
            assert lost == set(predicted.still_lost), f"seed {seed}"
            assert lost <= _lost(before, after), f"seed {seed}: the lines lose other topics"
            followed += 1
    assert followed > _EDITS // 40
