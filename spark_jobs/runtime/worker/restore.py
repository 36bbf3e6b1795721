"""A task's local state brought to the version that is committed."""

import secrets
from collections.abc import Iterator
from contextlib import closing

from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.engine.task import Task
from spark_jobs.runtime.worker.local_state import LocalState, MemoryState
from spark_jobs.runtime.worker.messages import WorkOrder
from spark_jobs.runtime.worker.restoring import Span, SpanReader
from spark_jobs.runtime.worker.session import Session

_LINE = "headwater.line"
"""Which line of versions a state is of: offsets that are deleted or set back begin another one."""

State = LocalState | MemoryState


def catch_up(order: WorkOrder, partition: int, state: State, session: Session) -> int:
    """Return how many records were restored; raises `KafkaException`.

    A state that is merely behind (the task was elsewhere meanwhile) gets what the changelogs hold since.
    """
    marker = session.marker
    line = marker.clocks.get(_LINE)
    is_kin = line is not None and state.metadata.get(_LINE) == line
    if is_kin and state.recover(marker.version):
        return 0
    if not is_kin or state.version > marker.version:
        state.reset()
    restored = _restore(order, partition, state, session)
    state.metadata.update(marker.clocks)
    state.metadata.setdefault(_LINE, secrets.randbits(62) | 1)
    state.commit(marker.version - 1)
    return restored


def _restore(order: WorkOrder, partition: int, state: State, session: Session) -> int:
    spans = dict(_spans(order.program, partition, state, session))
    if not spans:
        return 0
    restored = 0
    task = Task(order.program, partition, state)
    with closing(SpanReader(order.connection, f"{order.group}-restore")) as reader:
        for topic, span in spans.items():
            for chunk in reader.read(topic, partition, span):
                task.restore(topic, chunk.records)
                restored += len(chunk.records)
                if line := session.marker.clocks.get(_LINE):
                    state.metadata[_LINE] = line  # killed now, it goes on from here
                state.commit(state.version - 1, {topic: chunk.next})
    return restored


def _spans(
    program: SubtopologyProgram, partition: int, state: State, session: Session
) -> Iterator[tuple[str, Span]]:
    known = state.offsets()
    for topic in program.changelogs.values():
        yield topic, Span(known.get(topic, 0))
    for topic in program.source_changelogs.values():
        # Only what was processed is state; the rest is still to come.
        yield topic, Span(known.get(topic, 0), session.positions.get((topic, partition), 0))
