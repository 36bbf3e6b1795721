"""Each instruction of a change report, followed: topics are kept, or it says what is given up."""

from collections.abc import Callable

import attrs
import pytest

from headwater.planner.edits import TopicEdit, Verdict
from tests.advice.fix_texts import alternatives, literals
from tests.edits.sides import COUNT, GENERATED, REDUCE, of_one

Text = Callable[[str], str]
FILTERED = GENERATED.replace("- selectKey:", "- filter:\n  - selectKey:")
WINDOWED = GENERATED.replace(
    "- count:", "- windowedBy: {tumbling: {size: 1h}}\n  - count: {materialized: counts}"
)
NAMED = """
application: {id: app}
topology:
  - stream: in
  - selectKey:
  - groupByKey: {name: by-key}
  - count: {materialized: counts}
"""
SUPPRESSED = """
application: {id: app}
topology:
  - stream: in
  - groupByKey:
  - count: {materialized: counts}
  - suppress: {until: timeLimit, timeLimit: 5s}
  - toStream:
  - to: out
"""
SOURCE = """
application: {id: app, config: {topology.optimization: all}}
topology:
  - table: {topic: table, as: t, materialized: t}
  - toStream:
  - to: out
"""
SWAPPED = """
application: {id: app}
topology:
  - stream: {topic: in, as: s}
  - groupByKey:
  - count:
"""
ADDED = "  - stream: {topic: other}\n  - groupByKey:\n  - count:"
FIRST = "{materialized: KSTREAM-AGGREGATE-STATE-STORE-0000000001}"


@attrs.frozen
class Followed:
    """An instruction, the edit whose report has it, and the document after the instruction is followed."""

    says: str
    before: str
    after: str
    follow: Text
    gives_up: bool = False


def _replaced(*pairs: tuple[str, str]) -> Text:
    def follow(text: str) -> str:
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        return text

    return follow


_LINES = _replaced(
    ("- count:", f"- count: {{materialized: {COUNT}}}"),
    ("- reduce:", f"- reduce: {{materialized: {REDUCE}}}"),
)
_UNDO = _replaced(("  - filter:\n", ""))
_SESSION = ("tumbling: {size: 1h}", "session: {gap: 1h}")
_PARTITIONED = GENERATED.replace("- selectKey:", '- repartition: {name: r, partitioner: "shop:ByRegion"}')
_STATIC = GENERATED.replace('"4.3"', '"4.3", config: {static.partitioner.class: initial-hash}')
_REPARTITIONED = """
application: {id: app, config: {static.partitioner.class: initial-hash}}
topology:
  - stream: in
  - repartition: {name: r}
  - groupByKey:
  - count: {materialized: counts}
"""
FOLLOWED = (
    Followed("Set `materialized", GENERATED, FILTERED, _LINES),
    Followed("together with the other lines", GENERATED, FILTERED, _LINES),
    Followed("Set the lines below", GENERATED, FILTERED, _LINES),
    Followed("or undo the part of the edit that shifts it", GENERATED, FILTERED, _UNDO),
    Followed(
        "undo the part of the edit that shifts it, or declare",
        SUPPRESSED,
        SUPPRESSED.replace("- groupByKey:", "- filter:\n  - groupByKey:"),
        _UNDO,
    ),
    Followed(
        "declare new operators after all others",
        SUPPRESSED,
        SUPPRESSED.replace("- groupByKey:", "- filter:\n  - groupByKey:"),
        lambda text: (
            text.replace("  - filter:\n", "").replace("stream: in", "stream: {topic: in, as: s}")
            + "  - filter: {from: s}\n"
        ),
    ),
    Followed(
        "Name the store exactly `counts` again",
        NAMED,
        NAMED.replace("counts", "order-counts"),
        _replaced(("order-counts", "counts")),
    ),
    Followed(
        "Name the operator exactly `by-key` again",
        NAMED,
        NAMED.replace("by-key", "by-customer"),
        _replaced(("by-customer", "by-key")),
    ),
    Followed(
        "Give the store another name, so that it starts empty",
        WINDOWED,
        WINDOWED.replace(*_SESSION),
        _replaced(("counts", "sessions")),
        gives_up=True,
    ),
    Followed(
        "Give the store another name if old and new windows must not mix",
        WINDOWED,
        WINDOWED.replace("1h", "2h"),
        _replaced(("counts", "two-hours")),
        gives_up=True,
    ),
    Followed(
        "Continue without the old state, or undo this part of the edit",
        GENERATED,
        FILTERED.replace("- count:", "- windowedBy: {session: {gap: 1m}}\n  - count:"),
        _replaced(("  - windowedBy: {session: {gap: 1m}}\n", ""), ("  - filter:\n", "")),
    ),
    Followed(
        "Give the new operator a name of its own",
        SWAPPED,
        SWAPPED.replace("topology:", f"topology:\n{ADDED}"),
        _replaced(
            (ADDED, ADDED.replace("- count:", "- count: {materialized: others}")),
            ("in, as: s}\n  - groupByKey:\n  - count:", f"in, as: s}}\n  - groupByKey:\n  - count: {FIRST}"),
        ),
    ),
    Followed(
        "Give the store another name if old and new results must not mix",
        SWAPPED,
        SWAPPED.replace("topic: in", "topic: other"),
        _replaced(("- count:", "- count: {materialized: others}")),
        gives_up=True,
    ),
    Followed(
        "Keep `reuse.ktable.source.topics` in `topology.optimization`",
        SOURCE,
        SOURCE.replace("all", "none"),
        _replaced(("none", "reuse.ktable.source.topics")),
    ),
    Followed(
        "Keep the count",
        GENERATED.replace("- selectKey:", "- repartition: {name: r, partitions: 2}"),
        GENERATED.replace("- selectKey:", "- repartition: {name: r, partitions: 3}"),
        _replaced(("partitions: 3", "partitions: 2")),
    ),
    Followed(
        "Keep the partitioner",
        _PARTITIONED,
        _PARTITIONED.replace("ByRegion", "ByCountry"),
        _replaced(("ByCountry", "ByRegion")),
    ),
    Followed("Keep the static partitioner", _STATIC, GENERATED, lambda _: _STATIC),
    Followed(
        "Keep the repartition topics before the store",
        _REPARTITIONED,
        _REPARTITIONED.replace("- repartition: {name: r}", "- mapValues:"),
        _replaced(("- mapValues:", "- repartition: {name: r}")),
    ),
)
_OPERATED = (
    "It is done on the cluster or with the application: `tests/oracle/edits` shows what happens otherwise."
)
_OF_TEXTS = "It is about the code: the texts of `Topology#describe()` do not show it."
NOT_FOLLOWED = {
    "Stop what writes to the source topics, and wait until the application has processed all records, before "
    "you stop it": _OPERATED,
    "To keep its data, name the store exactly": _OF_TEXTS,
    "undo the change that shifted the index": _OF_TEXTS,
    "To keep its data, name the grouping exactly": _OF_TEXTS,
    "before a join, add `repartition: {name": _OF_TEXTS,
    "No name that you can give keeps the name of this topic: undo the part of the edit that shifts it": "The "
    "second half is followed.",
    "Run `pulumi up`, which changes the settings of the existing topic": _OPERATED,
    "A name shifts the numbers after it: plan again before you apply it": _OF_TEXTS,
    "Otherwise continue without the old state": "Nothing is done.",
    "Compare the document with its earlier version (`--git`): it shows which name keeps it": "It is in "
    "another report.",
    "Compare documents of both versions, for example with `--git": "It is in another report.",
    "the code of the operators: it shows what is kept": _OF_TEXTS,
    "move the state (`headwater reshard": _OPERATED,
    "Otherwise stop the application and copy the state (`headwater state copy": _OPERATED,
    "continue without the old state": "Nothing is done.",
    "Delete it when you do not go back (`leftovers": _OPERATED,
    "Make sure that the source topic is compacted": _OPERATED,
    "undo the edit": "The document is as before.",
    "Keep the name": "Replaced by the line that keeps it.",
    "Keep the application id: state is copied only within one application": "The document is as before.",
    "keep the new name, and copy the state while all instances are stopped": _OPERATED,
    "headwater state copy DOCUMENT --store": _OPERATED,
    "stop all instances, delete": _OPERATED,
    "and the local state, and start without the old state": _OPERATED,
    "Compare key and value of the operators in the code": _OF_TEXTS,
    "If they are the same, its data is kept": _OF_TEXTS,
    "Expand the topic before the start (`headwater plan` shows how": _OPERATED,
    "reset the application": _OPERATED,
    "Check the partitioner of what writes the source topics": _OPERATED,
    "Stop all instances, and delete their local state, before you start the new version: they restore it "
    "from the changelog": _OPERATED,
    "Write the current record of each key of": _OPERATED,
    "again with the new serdes before the edit": _OPERATED,
    "If the store is versioned now, run `pulumi up` first: it sets `min.compaction.lag.ms": _OPERATED,
    "reset the offsets of the source topic": _OPERATED,
}
"""Instructions that no document follows, with the reason."""


def _addressed(each: Followed) -> list[TopicEdit]:
    return [topic for topic in of_one(each.before, each.after).topics if each.says in topic.first]


@pytest.mark.parametrize("each", FOLLOWED, ids=lambda each: each.says)
def test_a_followed_instruction_keeps_the_state(each: Followed) -> None:
    addressed = _addressed(each)
    assert addressed, [topic.first for topic in of_one(each.before, each.after).topics]

    followed = of_one(each.before, each.follow(each.after))

    assert not [topic for topic in followed.topics if topic.verdict is Verdict.RESET], followed.topics
    if each.gives_up:
        assert {topic.verdict for topic in followed.topics} <= {
            Verdict.ADDED,
            Verdict.ORPHANED,
            Verdict.RENAMED,
            Verdict.KEPT,
        }
        return
    existed = {topic.topic for topic in of_one(each.before, each.before).topics}
    former = {topic.former or topic.topic for topic in addressed} & existed
    kept = {topic.topic for topic in followed.topics if topic.verdict is Verdict.KEPT}
    assert former <= kept
    assert not [topic for topic in followed.topics if topic.loses_data]


def test_each_instruction_is_followed_or_has_a_reason() -> None:
    found = literals("infra/headwater/planner/edits")
    followed = {
        instruction
        for each in FOLLOWED
        for topic in _addressed(each)
        for instruction in alternatives(topic.first)
        if any(part and part in instruction for part in alternatives(each.says))
    }
    unknown = {
        literal
        for literal in found
        if literal not in NOT_FOLLOWED and not any(literal in instruction for instruction in followed)
    }

    assert not unknown
    assert NOT_FOLLOWED.keys() <= found.keys(), NOT_FOLLOWED.keys() - found.keys()


def test_the_steps_after_a_rename_copy_the_state_before_the_start() -> None:
    steps = of_one(NAMED, NAMED.replace("counts", "order-counts")).steps
    copied = next(number for number, step in enumerate(steps) if "--store counts=order-counts" in step)
    assert copied > steps.index("Stop all instances.")
    assert "start the new version" in steps[copied + 1]


def test_the_steps_grant_acls_before_the_application_needs_them() -> None:
    """With them, the application cannot create the topics of the new topology itself."""
    before = NAMED.replace("topology:", "acls: {principals: ['User:app']}\ntopology:")
    steps = of_one(before, before.replace("counts", "order-counts")).steps
    (granted,) = (number for number, step in enumerate(steps) if "grants its ACLs" in step)
    assert steps.index("Stop all instances.") < granted < len(steps) - 1
    assert "grants" not in " ".join(of_one(before, before).steps)


def test_the_steps_accept_other_generated_names_where_a_plan_refuses_them() -> None:
    manual = '"4.3", config: {internal.topics.setup: manual}'
    before, after = (text.replace('"4.3"', manual) for text in (GENERATED, FILTERED))
    (run,) = (step for step in of_one(before, after).steps if "pulumi up" in step)
    assert run.startswith("Run `pulumi up` with `setup.reinitialize: true` for this run")
    named = NAMED.replace("id: app", "id: app, config: {internal.topics.setup: manual}")
    (run,) = (step for step in of_one(named, named.replace("counts", "sums")).steps if "pulumi up" in step)
    assert "reinitialize" not in run


def test_no_step_copies_the_state_of_another_application() -> None:
    renamed = of_one(NAMED, NAMED.replace("id: app", "id: other"))
    assert not [step for step in renamed.steps if "state copy" in step]
    assert not [topic for topic in renamed.topics if "state copy" in topic.first]
