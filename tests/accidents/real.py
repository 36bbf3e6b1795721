"""The same steps on a real broker with the real engine, compared with the simulation after each run."""

import random
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import attrs
from confluent_kafka import Producer

from headwater.kafka import Connection, KafkaClusterReader
from headwater.kafka.ownership import encode_record, key_of
from headwater.model.records import OWNERSHIP_TOPIC, OwnershipRecord, StackIdentity
from headwater.pulumi.stack_state import StackState
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.sessions import kill_session
from tests.accidents.cluster import AccidentCluster
from tests.accidents.documents import Declared
from tests.accidents.engine import Resource, State
from tests.accidents.members import Members
from tests.accidents.simulated import Run
from tests.accidents.world import STACKS
from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import STACK, Outcome, Stack, kill

_ERROR = re.compile(r"error\[(\w+)\]")
_HOSTILE = "hostile"
"""The id of the stack in records that no stack has written."""
_UNREADABLE = b"[" * 100_000
_MOST_LINES = 24
_LONGEST_DELAY_SECONDS = 0.2
_KILLED_AFTER_SECONDS = 120


@attrs.define
class RealMirror:
    """Two stacks of the real engine. `ids` is simulated → real id, of topics and of stacks."""

    simulated: AccidentCluster
    real: Cluster
    stacks: Mapping[str, Stack]
    members: Members
    chance: random.Random
    states: Mapping[str, Callable[[], State]] = attrs.field(factory=dict)
    """The simulated state of each stack."""
    saved: list[str] = attrs.field(factory=list)
    ids: dict[str, str] = attrs.field(factory=lambda: {_HOSTILE: _HOSTILE})
    is_recovering: bool = False
    """Whether the next run is the first one after a kill: its state may still show when that was."""
    compared: int = 0
    kills: int = 0

    def create(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        self.real.create(name, partitions, config)

    def delete(self, name: str) -> None:
        self.real.delete(name)

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        self.real.set_config(name, **{key.replace(".", "_"): value for key, value in config.items()})

    def write(self, name: str) -> None:
        self.real.produce(name, key=b"key")

    def commit(self, group: str, name: str) -> None:
        if not self.members.commit(group, name):
            self.real.commit(group, name)

    def join(self, group: str, name: str) -> None:
        self.members.join(group, name)

    def leave(self, group: str) -> None:
        self.members.leave(group)

    def forget(self, group: str) -> None:
        self.members.leave(group)
        self.real.delete_group(group)

    def up(self, stack: str, documents: Sequence[Declared], run: Run) -> None:
        """Run `up` with the documents, and compare what it did."""
        self._declare(stack, documents)
        self.members.wait_until_stable()
        outcome = self.stacks[stack].up()
        assert outcome.succeeded == run.is_finished, f"simulated: {run.codes} {run.error}\nreal: {outcome}"
        found = tuple(sorted(set(_ERROR.findall(outcome.text))))
        assert found == run.codes, f"simulated: {run.codes}\nreal: {outcome}"
        self._compare(stack, outcome)

    def up_killed(self, stack: str, documents: Sequence[Declared], released: frozenset[str]) -> None:
        """Kill `up` at a random time: no topic is gone but those that were `released`.

        The program and the plugins are killed, too.
        """
        self._declare(stack, documents)
        before = self._topic_ids()
        process = self.stacks[stack].start("up", "--yes", "--skip-preview", "--parallel", "2")
        late = threading.Timer(_KILLED_AFTER_SECONDS, kill_session, [process.pid])
        late.start()
        assert process.stdout is not None
        lines = (process.stdout.readline() for _ in range(self.chance.randrange(_MOST_LINES)))
        is_over = not all(lines)
        threading.Event().wait(self.chance.uniform(0, _LONGEST_DELAY_SECONDS))
        late.cancel()
        self.kills += not is_over and process.poll() is None
        output = kill(process)
        self.is_recovering = True
        self.stacks[stack].succeed("cancel", "--yes")
        after = self._topic_ids()
        deletable = {self.ids.get(id_) for id_ in released}
        gone = {name: id_ for name, id_ in before.items() if after.get(name) != id_}
        assert not {name for name, id_ in gone.items() if id_ not in deletable}, output

    def save(self, stack: str) -> None:
        self.saved.append(self.stacks[stack].succeed("stack", "export"))

    def restore(self, stack: str, number: int) -> None:
        state = self.saved[number]
        for other in STACKS:
            state = state.replace(f"::{_project(other)}::", f"::{_project(stack)}::")
        file = self.stacks[stack].folder / "imported.json"
        file.write_text(state)
        self.stacks[stack].succeed("stack", "import", "--file", str(file))

    def lose(self, stack: str) -> None:
        self.stacks[stack].succeed("stack", "rm", "--yes", "--force", "--preserve-config")
        self.stacks[stack].initialize()

    def drop(self, stack: str, urn: str) -> None:
        for found in (str(resource["urn"]) for resource in self.stacks[stack].state()):
            if _type_and_name(found) == _type_and_name(urn):
                self.stacks[stack].succeed(
                    "state", "delete", found, "--yes", "--force", "--target-dependents"
                )
                return
        raise AssertionError(f"not in the real state: {urn}")

    def refresh(self, stack: str) -> None:
        self.stacks[stack].succeed("refresh", "--yes", "--skip-preview")

    def unprotect(self, stack: str) -> None:
        self.stacks[stack].succeed("state", "unprotect", "--all", "--yes")

    def destroy(self, stack: str) -> None:
        outcome = self.stacks[stack].run("destroy", "--yes", "--skip-preview")
        is_empty = not self.states[stack]()
        assert outcome.succeeded == is_empty, str(outcome)

    # Ownership records

    def knows_record(self, key: tuple[str, str]) -> bool:
        return key[0] in self.ids

    def write_record(self, record: OwnershipRecord) -> None:
        """Write a record of a hostile user, with the ids of the real topics."""
        self._write_record(record.key, encode_record(self._real_record(record)))

    def lose_record(self, key: tuple[str, str]) -> None:
        self._write_record(key, None)

    def write_unreadable_record(self, key: tuple[str, str]) -> None:
        self._write_record(key, _UNREADABLE)

    def _write_record(self, key: tuple[str, str], value: bytes | None) -> None:
        producer = Producer({"bootstrap.servers": self.real.bootstrap_servers})
        producer.produce(OWNERSHIP_TOPIC, value, key_of(self.ids[key[0]], key[1]))
        assert producer.flush(_KILLED_AFTER_SECONDS) == 0

    def _real_record(self, record: OwnershipRecord) -> OwnershipRecord:
        """Return the record as the real stack writes it."""
        *_, name = record.stack.name.split("/")
        stack = StackIdentity(self._real_id(record.stack.id), f"organization/{_project(name)}/{STACK}")
        return attrs.evolve(
            record,
            stack=stack,
            topics={topic: self._real_id(id_) for topic, id_ in record.topics.items()},
        )

    def _real_id(self, simulated: str) -> str:
        live = [name for name, topic in self.simulated.topics.items() if topic.topic_id == simulated]
        if live and simulated not in self.ids:
            self.ids[simulated] = self.real.topic_id(live[0])
        return self.ids.get(simulated, "")

    # Comparisons

    def _declare(self, stack: str, documents: Sequence[Declared]) -> None:
        for file in (self.stacks[stack].folder / "documents").iterdir():
            file.unlink()
        for document in documents:
            self.stacks[stack].document(document.id, document.text)

    def _topic_ids(self) -> Mapping[str, str]:
        return self.real.topic_ids({name for name in self.real.names() if not name.startswith("__")})

    def _compare(self, stack: str, outcome: Outcome) -> None:
        """Compare all topics (counts, settings, ids, number of records), and the ownership records."""
        self.compared += 1
        simulated = self.simulated.topics
        found = self._topic_ids()
        names = found.keys()
        assert names == simulated.keys(), f"{sorted(names ^ simulated.keys())}\n{outcome}"
        for name, id_ in found.items():
            assert self.ids.setdefault(simulated[name].topic_id, id_) == id_, f"{name}\n{outcome}"
        assert {name: self.real.partitions(name) for name in names} == {
            name: topic.partitions for name, topic in simulated.items()
        }, str(outcome)
        assert {name: self.real.config(name) for name in names} == {
            name: dict(topic.config) for name, topic in simulated.items()
        }, str(outcome)
        reader = KafkaClusterReader(Connection(bootstrap_servers=(self.real.bootstrap_servers,)))
        written = {name: count for name, count in self.simulated.written.items() if name in names}
        counts = reader.record_counts({name: simulated[name].partitions for name in written})
        assert counts == written, str(outcome)
        if not self.is_recovering:
            self._compare_records(stack, reader, outcome)
        self.is_recovering = False

    def _compare_records(self, stack: str, reader: KafkaClusterReader, outcome: Outcome) -> None:
        simulated, real = (
            StackState.from_outputs(
                {urn: {"type": each.type, "outputs": each.outputs} for urn, each in state.items()}
            )
            for state in (self.states[stack](), self._real_state(stack))
        )
        assert bool(simulated.stack_id) == bool(real.stack_id), str(outcome)
        if simulated.stack_id:
            known = self.ids.setdefault(simulated.stack_id, real.stack_id)
            assert known == real.stack_id, str(outcome)
        log = reader.read_ownership()
        assert _described(log.records) == _described(
            map(self._real_record, self.simulated.ownership.values())
        )
        assert len(log.unread) == len(self.simulated.unreadable), str(outcome)

    def _real_state(self, stack: str) -> State:
        return {
            each["urn"]: Resource(each["type"], "", {}, each.get("outputs", {}))
            for each in self.stacks[stack].state()
        }


def create_stacks(folder: Path, toolchain: PulumiToolchain, cluster: Cluster) -> Mapping[str, Stack]:
    """Create a stack in a project of its own for each simulated one."""
    found = {}
    for name in STACKS:
        settings = {"bootstrapServers": cluster.bootstrap_servers}
        stack = Stack.create(folder / name, toolchain, settings, is_preloaded=True, has_passphrase=False)
        (stack.folder / "Pulumi.yaml").write_text(f"name: {_project(name)}\nruntime: python\n")
        shutil.rmtree(stack.folder / "state")
        (stack.folder / "state").mkdir()
        stack.initialize()
        found[name] = stack
    return found


def _described(records: Iterable[OwnershipRecord]) -> Counter[str]:
    """Return what the records say, without random ids."""
    return Counter(
        f"{each.application_id} of {each.stack.name}: {sorted(each.topics)}, finished {each.is_finished}, "
        f"retired {each.is_retired} {sorted(each.retired_topics)}, reads {sorted(each.reads)}"
        for each in records
    )


def _project(stack: str) -> str:
    return f"headwater-{stack}"


def _type_and_name(urn: str) -> tuple[str, str]:
    *_, type_, name = urn.split("::")
    return type_.rpartition("$")[2], name
