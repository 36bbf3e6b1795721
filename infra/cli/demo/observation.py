"""What can be seen after a step: whether the command succeeded, its errors, what became of the topics."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Self

import attrs

from infra.cli.pulumi_project import Finished
from infra.model.cluster import LiveTopic
from infra.planner.wording import counted

_ERROR = re.compile(r"error\[(\w+)\]")
_PLANNED = re.compile(r"^ +(create|recreate|adopt|expand|rectify) +\S+ +\d.*?(?:wave (\d+))?$", re.MULTILINE)
_PLACE = re.compile(r"^ +at +(\S+):(\d+):\d+", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Seen:
    """`errors` are the codes of problems; `place` is file and line of the first.

    `planned` counts the topics of the plan by what happens to them, `waves` those that grow, wave by wave.
    `expanded` is topic → count after, `replaced` are topics that have another id than before. `results` is
    what the application has written, as far as a step looks at it.
    """

    succeeded: bool = True
    errors: frozenset[str] = frozenset()
    place: str | None = None
    planned: Mapping[str, int] = attrs.field(factory=dict)
    waves: tuple[int, ...] = ()
    created: int = 0
    expanded: Mapping[str, int] = attrs.field(factory=dict)
    replaced: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    results: Mapping[str, float] = attrs.field(factory=dict)

    @classmethod
    def of(cls, finished: Finished, before: Mapping[str, LiveTopic], after: Mapping[str, LiveTopic]) -> Self:
        """Compare the cluster before and after, and read what the command said."""
        both = before.keys() & after.keys()
        place = _PLACE.search(finished.text)
        planned = _PLANNED.findall(finished.text)
        waves = Counter(wave for _, wave in planned if wave)
        return cls(
            succeeded=finished.code == 0,
            errors=frozenset(_ERROR.findall(finished.text)),
            place=f"{place[1]}:{place[2]}" if place and finished.code else None,
            planned=dict(Counter(kind for kind, _ in planned)),
            waves=tuple(waves[wave] for wave in sorted(waves)),
            created=len(after.keys() - before.keys()),
            expanded={n: after[n].partitions for n in both if after[n].partitions != before[n].partitions},
            replaced=frozenset(name for name in both if after[name].topic_id != before[name].topic_id),
            deleted=frozenset(before.keys() - after.keys()),
        )

    def meets(self, expected: "Seen") -> bool:
        """Whether this is what was expected; a place counts only where one is expected."""
        return attrs.evolve(self, place=self.place if expected.place else None) == expected

    def __str__(self) -> str:
        codes = ", ".join(sorted(self.errors))
        outcome = "succeeds" if self.succeeded else f"refused: {codes or 'no code'}"
        place = f" at {self.place}" if self.place else ""
        planned = "".join(f", {number} to {kind}" for kind, number in sorted(self.planned.items()))
        results = "".join(f"; {name}: {number:.2f}" for name, number in sorted(self.results.items()))
        return f"{outcome}{place}{planned}; {self._changes()}{results}"

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
        return ", ".join(changes) or "nothing changed"
