"""Topics that somebody else expands between the plan and their registration: the agent, or an operator.

The provider's update fails on a topic that has its partitions already, and Pulumi then shows that topic as an
update without a difference until the next `up`. So a topic that is to grow is looked at once more.
"""

from collections.abc import Iterable

import attrs

from infra.apply.cluster_writer import ClusterWriter
from infra.apply.registration import TopicResource, register_grown
from infra.apply.stack_state import StackState
from infra.model.problems import ProblemsError
from infra.observe import ClusterReader
from infra.planner import TopicAction


@attrs.frozen
class SecondLook:
    """How to look at the topics of `actions` again."""

    reader: ClusterReader
    writer: ClusterWriter
    state: StackState
    actions: Iterable[TopicAction]

    def at(self, topic: TopicResource) -> TopicResource:
        """Return how `topic` has to be registered now. What else was to change of one that has grown is done.

        Blocks; raises `pulumi.RunError` if that cannot be done.
        """
        partitions = self._partitions(topic.name)
        if partitions < topic.inputs["partitions"]:
            return topic
        action = next(action for action in self.actions if action.name == topic.name)
        decided = register_grown(action, partitions, self.state)
        if decided.repairs:
            self.writer.repair(decided.repairs)
        return decided.topics[0]

    def _partitions(self, name: str) -> int:
        """A cluster that does not answer now may answer the provider."""
        try:
            return self.reader.partition_counts([name]).get(name, 0)
        except ProblemsError:
            return 0
