"""Which topics of renamed stores and repartition topics can be copied. No effects."""

from collections.abc import Mapping, Sequence

import attrs

from headwater.compiler import StreamsConfig
from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.problems import Problem
from headwater.model.topology import Application
from headwater_spark.driver.reshard.copy_problems import copy_refused, other_count
from headwater_spark.engine.scaling.transfers import Transfer

_CHANGELOG = "-changelog"

Renames = Sequence[tuple[str, str]]
"""(Old topic, new topic): full names of changelog or repartition topics."""


@attrs.frozen
class TopicCopy:
    """The topic `target` of the application gets what `source` has; both have `partitions`."""

    source: str
    target: InternalTopic
    partitions: int

    @property
    def is_changelog(self) -> bool:
        return self.target.kind is TopicKind.CHANGELOG

    @property
    def transfer(self) -> Transfer:
        return Transfer(self.source, self.target.name, self.partitions, self.partitions)


def plan_copies(
    renames: Renames, compiled: CompiledApplication, counts: Mapping[str, int]
) -> tuple[tuple[TopicCopy, ...], tuple[Problem, ...]]:
    """Return the copies for renamed topics, and all that prevents them.

    `compiled` is the application with the new names, `counts` is topic → partition count on the cluster.
    """
    targets = {topic.name: topic for topic in compiled.internal_topics}
    copies, wrong = [], []
    for old, new in renames:
        if (refused := _find_refusal(old, new, compiled.application, targets, counts)) is not None:
            wrong.append(refused)
        else:
            copies.append(TopicCopy(old, targets[new], counts[old]))
    if len({new for _, new in renames}) < len(renames) or len({old for old, _ in renames}) < len(renames):
        wrong.append(copy_refused(renames[0][1], "a topic is named twice", "each topic once", "Correct it."))
    return tuple(copies), tuple(wrong)


def _find_refusal(
    old: str,
    new: str,
    application: Application,
    targets: Mapping[str, InternalTopic],
    counts: Mapping[str, int],
) -> Problem | None:
    """Return why the state of topic `old` cannot be copied to `new`; None = it can be."""
    prefix = f"{StreamsConfig.of(application).topic_prefix or application.id}-"
    if new not in targets:
        names = ", ".join(sorted(targets))
        return copy_refused(new, "the application has no such internal topic", names, "Name one.")
    if old not in counts:
        return copy_refused(new, f"{old} does not exist", "the old topic", "Check the old name.")
    if not old.startswith(prefix):
        return copy_refused(
            new,
            f"{old} is not a topic of {application.id}",
            f"a topic whose name begins with {prefix}",
            "The application of the topic may run. State is copied only in one application.",
        )
    if old.endswith(_CHANGELOG) is not new.endswith(_CHANGELOG):
        return copy_refused(
            new,
            f"only one of {old} and {new} is a changelog topic",
            "two changelog topics, or two repartition topics",
            "Correct it.",
        )
    if old in targets:
        return copy_refused(
            new,
            f"{old} is still a topic of the application",
            "a topic that the application does not use any more",
            "Use the document of the new version.",
        )
    if new in counts and counts[new] != counts[old] == targets[new].partitions:
        return other_count(new, counts[new], counts[old])
    if len({counts[old], counts.get(new, counts[old]), targets[new].partitions}) > 1:
        return copy_refused(
            new,
            f"{old} has {counts[old]} partitions, the new topic {targets[new].partitions}",
            "equal partition counts",
            "Change names and partition counts one after the other: run `headwater reshard` before.",
        )
    return None
