"""The observed result of a step of the demo, to compare with the expected one: errors and changed topics."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Self

import attrs

from headwater.model.cluster import LiveTopic
from headwater.planner import ActionKind
from headwater.planner.phrases import counted
from headwater.toolchain.pulumi_cli import Finished

_ERROR = re.compile(r"error\[(\w+)\]")
ACTIONS = "|".join(
    kind.value
    for kind in (
        ActionKind.CREATE,
        ActionKind.RECREATE,
        ActionKind.ADOPT,
        ActionKind.EXPAND,
        ActionKind.RECONFIGURE,
    )
)
_PLANNED = re.compile(rf"^ +({ACTIONS}) +\S+ +\d.*?(?:wave (\d+))?$", re.MULTILINE)
_LOST = re.compile(r"^Change of the topology: (\d+) stores? loses? ", re.MULTILINE)
_LOCATION = re.compile(r"^ +at +(\S+):(\d+):\d+", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Observation:
    """What a step of the demo has shown; each step has an expected observation.

    `errors` are the codes of problems; `location` is file and line of the first. `planned` is kind of action
    → number of topics in the plan. `waves` is the number of topics in each wave of an expansion. `expanded`
    is topic → new partition count; `replaced` are topics with a new topic id. `results` are output records of
    the application. `lost_stores` is how many stores would lose their state by an edit.
    """

    succeeded: bool = True
    errors: frozenset[str] = frozenset()
    location: str | None = None
    planned: Mapping[str, int] = attrs.field(factory=dict)
    waves: tuple[int, ...] = ()
    created: int = 0
    expanded: Mapping[str, int] = attrs.field(factory=dict)
    replaced: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    results: Mapping[str, float] = attrs.field(factory=dict)
    lost_stores: int = 0

    @classmethod
    def of(cls, finished: Finished, before: Mapping[str, LiveTopic], after: Mapping[str, LiveTopic]) -> Self:
        """Compare the topics before and after a command, and parse its output."""
        both = before.keys() & after.keys()
        location = _LOCATION.search(finished.text)
        planned = _PLANNED.findall(finished.text)
        lost = _LOST.search(finished.text)
        waves = Counter(wave for _, wave in planned if wave)
        return cls(
            succeeded=finished.code == 0,
            errors=frozenset(_ERROR.findall(finished.text)),
            location=f"{location[1]}:{location[2]}" if location and finished.code else None,
            planned=dict(Counter(kind for kind, _ in planned)),
            waves=tuple(waves[wave] for wave in sorted(waves)),
            created=len(after.keys() - before.keys()),
            expanded={n: after[n].partitions for n in both if after[n].partitions != before[n].partitions},
            replaced=frozenset(name for name in both if after[name].topic_id != before[name].topic_id),
            deleted=frozenset(before.keys() - after.keys()),
            lost_stores=int(lost[1]) if lost else 0,
        )

    def matches(self, expected: "Observation") -> bool:
        """Whether this is as expected; the location is compared only if one is expected."""
        return attrs.evolve(self, location=self.location if expected.location else None) == expected

    def __str__(self) -> str:
        codes = ", ".join(sorted(self.errors))
        outcome = "succeeds" if self.succeeded else f"refused: {codes or 'no code'}"
        if self.lost_stores:
            outcome = f"{counted(self.lost_stores, 'store')} would lose state"
        location = f" at {self.location}" if self.location else ""
        planned = "".join(f", {number} to {kind}" for kind, number in sorted(self.planned.items()))
        results = "".join(f"; {name}: {number:.2f}" for name, number in sorted(self.results.items()))
        return f"{outcome}{location}{planned}; {self._changes()}{results}"

    def _changes(self) -> str:
        changes = []
        if self.created:
            changes.append(f"{counted(self.created, 'topic')} created")
        if self.expanded:
            sizes = "/".join(str(count) for count in sorted(set(self.expanded.values())))
            order = f" (order: {', then '.join(map(str, self.waves))})" if len(self.waves) > 1 else ""
            changes.append(f"{counted(len(self.expanded), 'topic')} expanded to {sizes}{order}")
        changes += [f"{name} REPLACED" for name in sorted(self.replaced)]
        changes += [f"{name} DELETED" for name in sorted(self.deleted)]
        # An adoption may change settings, which are not compared here.
        unchanged = "no topic created, replaced or expanded" if "adopt" in self.planned else "nothing changed"
        return ", ".join(changes) or unchanged
