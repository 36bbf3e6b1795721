"""Random steps without Hypothesis: a series of them takes as long as the real engine needs."""

import random
from collections.abc import Callable

import attrs

from headwater.model.records import OWNERSHIP_TOPIC, OwnershipRecord, StackIdentity
from tests.accidents.continuation import settle
from tests.accidents.documents import Declared, internal_topics
from tests.accidents.engine import Clock
from tests.accidents.incidents import ALL
from tests.accidents.world import (
    GROUPS,
    IDS,
    OTHER_SOURCE,
    SETTINGS,
    SINKS,
    SOURCE,
    STACKS,
    STORES,
    World,
)

_RETENTIONS = (86_400_000, 604_800_000, -1)
_SETTINGS_THAT_KEEP = (
    {"retention.ms": "-1"},
    {"min.compaction.lag.ms": "1000"},
    {"segment.bytes": "1048576"},
)


@attrs.frozen
class Series:
    """Steps on a world, drawn by `chance`."""

    world: World
    chance: random.Random

    def take(self, steps: int) -> None:
        """Take so many steps, each followed by a run of both stacks."""
        for _ in range(steps):
            self.chance.choice(self._kinds())()
            stack = self.chance.choice(STACKS)
            self.world.up(stack)

    def _kinds(self) -> tuple[Callable[[], None], ...]:
        return (
            self._declare,
            self._declare,
            self._change_stores,
            self._change_stores,
            self._change_sink,
            self._change_lifecycle,
            self._retire,
            self._retire,
            self._leave_over,
            self._move,
            self._kill,
            self._kill,
            self._kill,
            self._kill,
            self._change_state,
            self._change_state,
            self._take_steps_in_a_row,
            self._take_steps_in_a_row,
            self._act_as_others,
            self._act_as_others,
            self._use_group,
            self._use_group,
            self._write_records,
            self._write_records,
            self._settle,
        )

    def _declare(self) -> None:
        stores = frozenset({"a", self.chance.choice(STORES)})
        sink = self.chance.choice(("", *SINKS))
        id_, is_manual = self.chance.choice(IDS), self.chance.random() < 1 / 3
        self.world.declare(
            self.chance.choice(STACKS),
            Declared(id=id_, source=SOURCE, stores=stores, sink=sink, is_manual=is_manual),
        )

    def _edit(self, **changes: object) -> None:
        if (found := self._document()) is not None:
            stack, document = found
            self.world.declare(stack, attrs.evolve(document, **changes))  # type: ignore[arg-type]

    def _document(self) -> tuple[str, Declared] | None:
        documents = self.world.documents
        found = [(stack, each) for stack in STACKS for _, each in sorted(documents[stack].items())]
        return self.chance.choice(found) if found else None

    def _change_stores(self) -> None:
        self._edit(stores=frozenset({"a", *self.chance.sample(STORES, 2)}))

    def _change_sink(self) -> None:
        self._edit(sink=self.chance.choice(SINKS), retention=self.chance.choice(_RETENTIONS))

    def _change_lifecycle(self) -> None:
        self._edit(lifecycle=self.chance.choice(("active", "retired", "released")))

    def _retire(self) -> None:
        if (found := self._document()) is not None:
            stack, document = found
            settle(self.world, stack)
            if document.id in self.world.documents[stack]:
                document = self.world.documents[stack][document.id]
                self.world.declare(stack, attrs.evolve(document, lifecycle="retired"))
                self.world.up(stack)
                if self.chance.random() < 1 / 3:
                    self.world.save(stack)
                self.world.remove(stack, document.id)
                self.world.up(stack)

    def _leave_over(self) -> None:
        """Remove a store, and take both steps of deleting its topic."""
        if (found := self._document()) is not None:
            stack, document = found
            settle(self.world, stack)
            document = self.world.documents[stack].get(document.id, document)
            left = internal_topics(document.id, document.stores) - internal_topics(
                document.id, frozenset("a")
            )
            none = frozenset[str]()
            for retire, delete in ((left, none), (none, left), (none, none)):
                changed = attrs.evolve(document, stores=frozenset({"a"}), retire=retire, delete=delete)
                self.world.declare(stack, changed)
                self.world.up(stack)

    def _move(self) -> None:
        if (found := self._document()) is not None:
            stack, document = found
            self.world.remove(stack, document.id)
            other = STACKS[1] if stack == STACKS[0] else STACKS[0]
            switches = frozenset(self.chance.choice(((), ("takeOver", "adopt"))))
            self.world.declare(other, attrs.evolve(document, setup=switches))

    def _kill(self) -> None:
        """Kill `up`, and run it again."""
        self._change_stores()
        stack = self.chance.choice(STACKS)
        self.world.up(stack, Clock(ends_at=self.chance.randrange(12)))
        self.world.up(stack)

    def _take_steps_in_a_row(self) -> None:
        self.chance.choice(ALL)(self.world, self.chance.choice(STACKS), self.chance.choice)

    def _use_group(self) -> None:
        """Let a group read or stop reading a topic; some have the ids of applications."""
        world, group = self.world, self.chance.choice(GROUPS)
        name = self._topic()
        self.chance.choice(
            (
                lambda: world.join(group, name),
                lambda: world.join(group, name),
                lambda: world.commit(group, name),
                lambda: world.leave(group),
                lambda: world.forget(group),
            )
        )()

    def _write_records(self) -> None:
        """Write to the topic of the ownership records as a hostile user."""
        world = self.world
        live = world.cluster.topics
        names = self.chance.sample(sorted(live), self.chance.randrange(min(3, len(live))))
        known = [key for key in sorted(world.cluster.ownership) if world.knows_record(key)]
        id_, of = self.chance.choice(IDS), self.chance.choice(("one", "three"))
        is_retired = of == "three" and self.chance.random() < 1 / 2
        forged = OwnershipRecord(
            application_id=id_,
            stack=StackIdentity("hostile", f"organization/headwater/{of}"),
            topics={name: live[name].topic_id for name in names},
            is_finished=self.chance.random() < 1 / 2,
            is_retired=is_retired,
        )
        steps: list[Callable[[], None]] = [
            lambda: world.write_record(forged),
            lambda: world.write_unreadable_record(("hostile", id_)),
            lambda: world.delete(OWNERSHIP_TOPIC),
        ]
        if known:
            steps.append(lambda: world.lose_record(self.chance.choice(known)))
            steps.append(lambda: world.write_unreadable_record(self.chance.choice(known)))
        self.chance.choice(steps)()

    def _settle(self) -> None:
        settle(self.world, self.chance.choice(STACKS))

    def _change_state(self) -> None:
        world, stack = self.world, self.chance.choice(STACKS)
        state = world.stacks[stack].state
        steps: list[Callable[[], None]] = [
            lambda: world.save(stack),
            lambda: world.lose(stack),
            lambda: world.refresh(stack),
            lambda: world.unprotect(stack),
        ]
        if world.saved:
            steps += [lambda: world.restore(stack, self.chance.randrange(len(world.saved)))] * 2
        if state:
            steps.append(lambda: world.drop(stack, self.chance.choice(sorted(state))))
        self.chance.choice(steps)()

    def _act_as_others(self) -> None:
        world = self.world
        name, settings = self._topic(), self.chance.choice(tuple(SETTINGS))
        new = self.chance.choice(sorted(internal_topics(self.chance.choice(IDS), frozenset(STORES))))
        self.chance.choice(
            (
                lambda: world.delete(name),
                lambda: world.recreate(name, settings),
                lambda: world.create(new, settings),
                lambda: world.write(name),
                lambda: world.write(name),
                lambda: world.configure(name, self.chance.choice(_SETTINGS_THAT_KEEP)),
            )
        )()

    def _topic(self) -> str:
        """Return a topic other than sources and the topic of the ownership records."""
        names = sorted(self.world.cluster.topics.keys() - {SOURCE, OTHER_SOURCE, OWNERSHIP_TOPIC})
        return self.chance.choice(names or [SOURCE])
