"""A process that is killed while it commits leaves the state of a whole batch."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater_spark.worker.local_state import LocalState

KEYS = 300
_COMMITS = f"""
import sys
from itertools import count
from pathlib import Path
from headwater_spark.worker.local_state import LocalState

state = LocalState(Path(sys.argv[1]))
store = state.store("s")
for batch in count(state.version):
    for key in range({KEYS}):
        store.put(b"%d" % key, b"%d" % batch)
    state.metadata["batch"] = batch
    state.prepare(batch)
    print(batch, flush=True)
    state.commit(batch, {{"changes": batch}})
"""


@pytest.mark.parametrize("after", [1, 2, 3, 5, 8])
def test_killed_while_committing(tmp_path: Path, after: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _COMMITS, str(tmp_path / "state")], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for _ in range(after):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        printed = child.stdout.read().splitlines()
    prepared = int(printed[-1]) if printed else after - 1
    state = LocalState(tmp_path / "state")
    assert state.version in (prepared, prepared + 1)
    _check_whole(state)
    if state.version == prepared:
        assert state.recover(prepared + 1)
        _check_whole(state)
    state.close()


def _check_whole(state: LocalState) -> None:
    """Check that all values and the metadata are of the last batch; offsets are those of the last commit."""
    last = state.version - 1
    stored = list(state.store("s").range())
    assert {value for _, value in stored} <= {b"%d" % last}
    assert len(stored) == (KEYS if state.version else 0)
    assert state.metadata.get("batch", -1) == last
    assert state.offsets().get("changes", -1) in (last, last - 1)
