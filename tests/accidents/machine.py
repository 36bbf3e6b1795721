"""The random search: each rule of the machine is a kind of step that operators or other clients take."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from headwater.model.records import OWNERSHIP_TOPIC, OwnershipRecord, StackIdentity
from tests.accidents.continuation import settle
from tests.accidents.documents import Declared, internal_topics
from tests.accidents.engine import AFTER_PLAN, Clock
from tests.accidents.incidents import ALL, retire
from tests.accidents.world import (
    CHANGES,
    GROUPS,
    IDS,
    OTHER_SOURCE,
    RETENTIONS,
    SETTINGS,
    SINKS,
    SOURCE,
    STACKS,
    STORES,
    SWITCHES,
    World,
    foreign_names,
)

_STACK = st.sampled_from(STACKS)
_ID = st.sampled_from(IDS)
_STORE = st.sampled_from(STORES)
_STORES = st.frozensets(_STORE, max_size=2).map(lambda stores: stores | {"a"})
_SINK = st.sampled_from(("", "", *SINKS))
_TOPIC = st.sampled_from((*foreign_names(), SOURCE))
_SETTINGS = st.sampled_from(tuple(SETTINGS))
_CHANGE = st.sampled_from(CHANGES)
_GROUP = st.sampled_from(GROUPS)
_AT = st.integers(AFTER_PLAN, 15)


class Accidents(RuleBasedStateMachine):
    """Steps on two stacks. The ledger of the world notices accidents after each run."""

    statistics: ClassVar[dict[str, int]] = dict.fromkeys(
        ("series", "steps", "runs", "finished", "deletions"), 0
    )

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    def teardown(self) -> None:
        """Check that both stacks can be continued, and count."""
        for stack in STACKS:
            settle(self.world, stack)
        counted = Accidents.statistics
        counted["series"] += 1
        counted["steps"] += len(self.world.log)
        for name in ("runs", "finished", "deletions"):
            counted[name] += getattr(self.world, name)

    # Documents

    @rule(stack=_STACK, id_=_ID, stores=_STORES, is_manual=st.booleans(), sink=_SINK)
    def declare(self, stack: str, id_: str, stores: frozenset[str], *, is_manual: bool, sink: str) -> None:
        """Add or replace a document; mostly a new application, or the same one in another stack."""
        self.world.declare(
            stack, Declared(id=id_, source=SOURCE, stores=stores, is_manual=is_manual, sink=sink)
        )

    @rule(data=st.data(), store=_STORE)
    def change_stores(self, data: st.DataObject, store: str) -> None:
        self._edit(data, lambda document: {"stores": (document.stores ^ {store}) | {"a"}})

    @rule(data=st.data(), lifecycle=st.sampled_from(("active", "retired", "retired", "released")))
    def change_lifecycle(self, data: st.DataObject, lifecycle: str) -> None:
        self._edit(data, lambda _: {"lifecycle": lifecycle})

    @rule(data=st.data(), sink=_SINK, retention=st.sampled_from(RETENTIONS))
    def change_sink(self, data: st.DataObject, sink: str, retention: int) -> None:
        self._edit(data, lambda document: {"sink": sink or document.sink, "retention": retention})

    @rule(data=st.data(), topic=_TOPIC)
    def change_input(self, data: st.DataObject, topic: str) -> None:
        reads = frozenset({topic}) & self.world.cluster.topics.keys()
        self._edit(data, lambda document: {"reads": reads - document.internal - {SOURCE}})

    @rule(data=st.data(), switch=st.sampled_from((*SWITCHES, "manual", "manual")))
    def change_switch(self, data: st.DataObject, switch: str) -> None:
        if switch == "manual":
            self._edit(data, lambda document: {"is_manual": not document.is_manual})
        else:
            self._edit(data, lambda document: {"setup": document.setup ^ {switch}})

    @rule(data=st.data(), topic=_TOPIC)
    def name_topic_to_adopt(self, data: st.DataObject, topic: str) -> None:
        self._edit(data, lambda document: {"adopts": document.adopts ^ {topic}})

    @rule(data=st.data(), section=st.sampled_from(("retire", "retire", "delete", "keep", "none")))
    def change_leftovers(self, data: st.DataObject, section: str) -> None:
        """Move a topic, mostly one that the application had, to a section of `leftovers`."""

        def change(document: Declared) -> Mapping[str, frozenset[str]]:
            ever = internal_topics(document.id, frozenset(STORES)) - document.topics
            topic = data.draw(st.sampled_from(sorted(ever) or [SOURCE]))
            listed = document.retire | document.delete | document.keep
            topic = data.draw(st.sampled_from((topic, *sorted(listed))))
            return {
                name: getattr(document, name) - {topic} | ({topic} if name == section else frozenset())
                for name in ("retire", "delete", "keep")
            }

        self._edit(data, change)

    @rule(data=st.data())
    def remove_document(self, data: st.DataObject) -> None:
        if found := self._documents():
            self.world.remove(*data.draw(st.sampled_from(found)))

    @rule(data=st.data())
    def move_document(self, data: st.DataObject) -> None:
        if found := self._documents():
            stack, id_ = data.draw(st.sampled_from(found))
            document = self.world.documents[stack][id_]
            self.world.remove(stack, id_)
            self.world.declare(*((STACKS[1] if stack == STACKS[0] else STACKS[0]), document))

    @rule(data=st.data(), new=_ID)
    def rename(self, data: st.DataObject, new: str) -> None:
        if found := self._documents():
            stack, id_ = data.draw(st.sampled_from(found))
            if new not in self.world.documents[stack]:
                document = self.world.documents[stack][id_]
                self.world.remove(stack, id_)
                self.world.declare(stack, attrs.evolve(document, id=new, former=id_))

    # Runs

    @rule(stack=_STACK)
    def up(self, stack: str) -> None:
        self.world.up(stack)

    @rule(stack=_STACK)
    def up_again(self, stack: str) -> None:
        self.world.up(stack)

    @rule(stack=_STACK, at=_AT)
    def up_killed(self, stack: str, at: int) -> None:
        self.world.up(stack, Clock(ends_at=max(at, 0)))

    @rule(
        data=st.data(), stack=_STACK, at=_AT, step=st.sampled_from(("re-create", "commit", "delete", "set"))
    )
    def up_while_others_act(self, data: st.DataObject, stack: str, at: int, step: str) -> None:
        name = self._draw_topic(data)
        settings, change = data.draw(_SETTINGS), data.draw(_CHANGE)
        steps: dict[str, Callable[[], None]] = {
            "re-create": lambda: self.world.recreate(name, settings),
            "commit": lambda: self.world.commit("audit", name),
            "delete": lambda: self.world.delete(name),
            "set": lambda: self.world.configure(name, change),
        }
        self.world.up(stack, Clock(others={at: steps[step]}))

    @rule(stack=_STACK)
    def up_approved(self, stack: str) -> None:
        self.world.up(stack, is_approved=True)

    @rule(stack=_STACK)
    def settle(self, stack: str) -> None:
        settle(self.world, stack)

    @rule(data=st.data(), stack=_STACK)
    def take_steps_in_a_row(self, data: st.DataObject, stack: str) -> None:
        data.draw(st.sampled_from(ALL))(
            self.world, stack, lambda options: data.draw(st.sampled_from(options))
        )

    @rule(data=st.data(), stack=_STACK)
    def retire(self, data: st.DataObject, stack: str) -> None:
        retire(self.world, stack, lambda options: data.draw(st.sampled_from(options)))

    # States

    @rule(stack=_STACK)
    def save_state(self, stack: str) -> None:
        self.world.save(stack)

    @precondition(lambda self: self.world.saved)
    @rule(data=st.data(), stack=_STACK, is_foreign=st.booleans())
    def restore_state(self, data: st.DataObject, stack: str, *, is_foreign: bool) -> None:
        numbers = [n for n, (name, _) in enumerate(self.world.saved) if is_foreign or name == stack]
        if numbers:
            self.world.restore(stack, data.draw(st.sampled_from(numbers)))

    @rule(stack=_STACK)
    def lose_state(self, stack: str) -> None:
        self.world.lose(stack)

    @rule(data=st.data(), stack=_STACK)
    def drop_from_state(self, data: st.DataObject, stack: str) -> None:
        if state := self.world.stacks[stack].state:
            self.world.drop(stack, data.draw(st.sampled_from(sorted(state))))

    @rule(stack=_STACK, step=st.sampled_from(("refresh", "unprotect", "destroy")))
    def change_state(self, stack: str, step: str) -> None:
        match step:
            case "refresh":
                self.world.refresh(stack)
            case "unprotect":
                self.world.unprotect(stack)
            case "destroy":
                self.world.destroy(stack)

    # Ownership records

    @precondition(lambda self: self.world.cluster.ownership)
    @rule(data=st.data())
    def lose_record(self, data: st.DataObject) -> None:
        self.world.lose_record(data.draw(st.sampled_from(sorted(self.world.cluster.ownership))))

    @rule(data=st.data(), id_=_ID)
    def write_unreadable_record(self, data: st.DataObject, id_: str) -> None:
        keys = (*sorted(self.world.cluster.ownership), ("hostile", id_))
        self.world.write_unreadable_record(data.draw(st.sampled_from(keys)))

    @rule()
    def lose_all_records(self) -> None:
        self.world.delete(OWNERSHIP_TOPIC)

    @rule(
        data=st.data(),
        id_=_ID,
        topics=st.frozensets(_TOPIC, max_size=3),
        flags=st.tuples(*[st.booleans()] * 3),
    )
    def write_foreign_record(
        self, data: st.DataObject, id_: str, topics: frozenset[str], flags: tuple[bool, bool, bool]
    ) -> None:
        """Write a record as another stack would, or as a hostile user: with any topics and any ids."""
        live = self.world.cluster.topics
        ids = {name: live[name].topic_id if name in live and flags[2] else "" for name in topics}
        name = data.draw(st.sampled_from(("organization/headwater/three", "organization/headwater/one")))
        is_retired = flags[0] and name.endswith("three")
        self.world.write_record(
            OwnershipRecord(
                application_id=id_,
                stack=StackIdentity("hostile", name),
                topics=ids,
                is_finished=flags[1],
                is_retired=is_retired,
            )
        )

    @precondition(lambda self: any(not each.is_retired for each in self.world.forgotten))
    @rule(data=st.data())
    def restore_record(self, data: st.DataObject) -> None:
        """Write a record of an earlier time again, as a restored topic would. It does not retire anything."""
        records = [each for each in self.world.forgotten if not each.is_retired and not each.retired_topics]
        if records:
            self.world.write_record(data.draw(st.sampled_from(records)))

    # Other clients

    @rule(name=_TOPIC, settings=_SETTINGS, is_written=st.booleans())
    def create_topic(self, name: str, settings: str, *, is_written: bool) -> None:
        self.world.create(name, settings)
        if is_written:
            self.world.write(name)

    @rule(data=st.data(), settings=_SETTINGS, is_created=st.booleans())
    def delete_topic(self, data: st.DataObject, settings: str, *, is_created: bool) -> None:
        name = self._draw_topic(data)
        self.world.delete(name)
        if is_created:
            self.world.create(name, settings)

    @rule(data=st.data())
    def write_records(self, data: st.DataObject) -> None:
        self.world.write(self._draw_topic(data))

    @rule(data=st.data(), change=_CHANGE)
    def change_settings(self, data: st.DataObject, change: Mapping[str, str]) -> None:
        self.world.configure(self._draw_topic(data), change)

    @rule(data=st.data(), group=_GROUP, step=st.sampled_from(("commit", "commit", "join", "leave", "forget")))
    def use_group(self, data: st.DataObject, group: str, step: str) -> None:
        match step:
            case "commit":
                self.world.commit(group, self._draw_topic(data))
            case "join":
                self.world.join(group, self._draw_topic(data))
            case "leave":
                self.world.leave(group)
            case "forget":
                self.world.forget(group)

    def _draw_topic(self, data: st.DataObject) -> str:
        names = sorted(self.world.cluster.topics.keys() - {SOURCE, OTHER_SOURCE, OWNERSHIP_TOPIC})
        return data.draw(st.sampled_from(names or [SOURCE]))

    def _documents(self) -> list[tuple[str, str]]:
        return [(stack, id_) for stack in STACKS for id_ in sorted(self.world.documents[stack])]

    def _edit(self, data: st.DataObject, change: Callable[[Declared], Mapping[str, object]]) -> None:
        if found := self._documents():
            stack, id_ = data.draw(st.sampled_from(found))
            document = self.world.documents[stack][id_]
            self.world.declare(stack, attrs.evolve(document, **change(document)))  # type: ignore[arg-type]
