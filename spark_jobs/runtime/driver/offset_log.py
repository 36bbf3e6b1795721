"""Where a batch ends, from the offset log of its checkpoint."""

import json
from collections.abc import Mapping
from pathlib import Path

_LOCAL = "file:"


def batch_ends(checkpoint: str, batch: int) -> Mapping[tuple[str, int], int]:
    """Return (topic, partition) → offset after the batch; empty for a checkpoint that is not on this machine.

    A batch of a transactional topic ends behind the transaction's own mark, which no reader sees: committing
    only what comes after the last record would show a lag of one for ever.
    """
    log = Path(checkpoint.removeprefix(_LOCAL), "offsets", str(batch))
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    ends: dict[tuple[str, int], int] = {}
    for line in lines[2:]:  # the format's version, the batch's metadata, then a line a source
        if line.startswith("{"):
            for topic, partitions in json.loads(line).items():
                ends |= {(topic, int(partition)): offset for partition, offset in partitions.items()}
    return ends
