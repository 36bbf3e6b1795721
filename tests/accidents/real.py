"""The same steps on a real broker with the real engine, compared with the simulation after each run."""

import random
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from headwater.kafka import Connection, KafkaClusterReader
from headwater.toolchain import PulumiToolchain
from tests.accidents.cluster import AccidentCluster
from tests.accidents.documents import Declared
from tests.accidents.simulated import Run
from tests.accidents.world import STACKS
from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import STACK, Outcome, Stack, kill

_ERROR = re.compile(r"error\[(\w+)\]")
_KILLED_WITHIN_SECONDS = 3.0


@attrs.define
class RealMirror:
    """Two stacks of the real engine. `ids` is simulated → real topic id."""

    simulated: AccidentCluster
    real: Cluster
    stacks: Mapping[str, Stack]
    chance: random.Random
    saved: list[str] = attrs.field(factory=list)
    ids: dict[str, str] = attrs.field(factory=dict)
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
        self.real.commit(group, name)

    def forget(self, group: str) -> None:
        self.real.delete_group(group)

    def up(self, stack: str, documents: Sequence[Declared], run: Run, *, is_killed: bool) -> None:
        """Run `up` with the documents. One that is killed is compared after the next run."""
        for file in (self.stacks[stack].folder / "documents").iterdir():
            file.unlink()
        for document in documents:
            self.stacks[stack].document(document.id, document.text)
        if is_killed:
            self._up_killed(stack)
            return
        outcome = self.stacks[stack].up()
        assert outcome.succeeded == run.is_finished, f"simulated: {run.codes} {run.error}\nreal: {outcome}"
        found = tuple(sorted(set(_ERROR.findall(outcome.text))))
        assert found == run.codes, f"simulated: {run.codes}\nreal: {outcome}"
        self._compare(outcome)

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
        self.stacks[stack].succeed("stack", "init", STACK)

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

    def _up_killed(self, stack: str) -> None:
        process = self.stacks[stack].start("up", "--yes", "--skip-preview", "--parallel", "2")
        with suppress(subprocess.TimeoutExpired):
            process.wait(self.chance.uniform(0.5, _KILLED_WITHIN_SECONDS))
        self.kills += process.poll() is None
        kill(process)
        self.stacks[stack].succeed("cancel", "--yes")

    def _compare(self, outcome: Outcome) -> None:
        """Compare names, counts, settings, ids and the number of records of all topics."""
        self.compared += 1
        simulated = self.simulated.topics
        names = {name for name in self.real.names() if not name.startswith("__")}
        assert names == simulated.keys(), f"{sorted(names ^ simulated.keys())}\n{outcome}"
        for name, id_ in self.real.topic_ids(names).items():
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


def create_stacks(folder: Path, toolchain: PulumiToolchain, cluster: Cluster) -> Mapping[str, Stack]:
    """Create a stack in a project of its own for each simulated one."""
    found = {}
    for name in STACKS:
        settings = {"bootstrapServers": cluster.bootstrap_servers}
        stack = Stack.create(folder / name, toolchain, settings, is_preloaded=True)
        (stack.folder / "Pulumi.yaml").write_text(f"name: {_project(name)}\nruntime: python\n")
        shutil.rmtree(stack.folder / "state")
        (stack.folder / "state").mkdir()
        stack.succeed("stack", "init", STACK)
        found[name] = stack
    return found


def _project(stack: str) -> str:
    return f"headwater-{stack}"


def _type_and_name(urn: str) -> tuple[str, str]:
    *_, type_, name = urn.split("::")
    return type_.rpartition("$")[2], name
