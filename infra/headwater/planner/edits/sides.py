"""Both topologies of an application, and which topics of one continue which topics of the other."""

from collections.abc import Mapping
from functools import cached_property

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import InternalTopic
from headwater.planner.edits.matching import Item, Matcher, matches
from headwater.planner.edits.partitioners import PartitionerChange, partitioner_changes
from headwater.planner.edits.topologies import Topology


@attrs.frozen
class Sides:
    """One application before and after an edit. `live` is None without a cluster."""

    before: Topology
    after: Topology
    live: ClusterSnapshot | None = None

    @cached_property
    def _matchers(self) -> tuple[Matcher, Matcher]:
        return Matcher(self.before), Matcher(self.after)

    @cached_property
    def continued(self) -> Mapping[tuple[bool, str], str]:
        """(Is a store, name before) → name afterwards."""
        return matches(*self._matchers)

    @cached_property
    def partitioner_changes(self) -> Mapping[tuple[bool, str], PartitionerChange]:
        """(Is a store, name afterwards) → the change of a partitioner that concerns it."""
        return partitioner_changes(self.before, self.after, self.origins)

    @cached_property
    def _items_by_name(self) -> tuple[Mapping[tuple[bool, str], Item], ...]:
        return tuple(
            {(item.is_store, item.name): item for item in matcher.items} for matcher in self._matchers
        )

    def _items(self, name: str, *, is_store: bool) -> tuple[Item | None, Item | None]:
        """Return the store or topic of this name on both sides."""
        old, new = (items.get((is_store, name)) for items in self._items_by_name)
        return old, new

    def has_same_path(self, name: str, *, is_store: bool) -> bool:
        """Return whether the same operators and stores are before a store or topic on both sides."""
        old, new = self._items(name, is_store=is_store)
        return old is not None and new is not None and old.path_with_stores == new.path_with_stores

    @cached_property
    def origins(self) -> Mapping[tuple[bool, str], str]:
        """(Is a store, name afterwards) → name before."""
        return {(is_store, new): old for (is_store, old), new in self.continued.items()}

    def inputs(self, name: str, *, is_store: bool) -> tuple[frozenset[str], frozenset[str]]:
        """Return the user topics before a store or topic, also of joined tables, on both sides."""
        old, new = self._items(name, is_store=is_store)
        return (old.all_inputs if old else frozenset()), (new.all_inputs if new else frozenset())

    def exists(self, topic: str) -> bool:
        """Return whether the topic exists, as far as is known."""
        return self.live is None or topic in self.live.topics

    def count(self, topic: InternalTopic) -> int:
        """Return the partition count before the edit: the count on the cluster, if it was read."""
        found = self.live.topics.get(topic.name) if self.live is not None else None
        return found.partitions if found is not None else topic.partitions
