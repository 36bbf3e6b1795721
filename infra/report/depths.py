"""How far downstream each sub-topology lies."""

from collections import defaultdict, deque
from collections.abc import Sequence

from infra.report.graph import PartBox


def depths(parts: Sequence[PartBox]) -> Sequence[int]:
    """Return the length of the longest way to each part.

    A cycle is entered at its first member.
    """
    readers: defaultdict[str, list[int]] = defaultdict(list)
    for index, part in enumerate(parts):
        for name in part.reads:
            readers[name].append(index)
    behind = [
        {reader for name in part.writes for reader in readers[name]} - {index}
        for index, part in enumerate(parts)
    ]
    waiting_for = [0] * len(parts)
    for successors in behind:
        for successor in successors:
            waiting_for[successor] += 1
    return _longest(behind, waiting_for)


def _longest(behind: Sequence[set[int]], waiting_for: list[int]) -> list[int]:
    depth = [0] * len(behind)
    done: set[int] = set()
    ready = deque(index for index, number in enumerate(waiting_for) if number == 0)
    untouched = iter(range(len(behind)))
    while len(done) < len(behind):
        index = ready.popleft() if ready else next(untouched)
        if index in done:
            continue
        done.add(index)
        for successor in behind[index] - done:
            depth[successor] = max(depth[successor], depth[index] + 1)
            waiting_for[successor] -= 1
            if waiting_for[successor] == 0:
                ready.append(successor)
    return depth
