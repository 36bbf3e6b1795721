"""The table of `headwater run --live` on a terminal, while other processes write to the same terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.cli.screen import lines_on_screen, output_on_terminal

_ROOT = Path(__file__).parents[2]
_LINES = 60
_PROGRAM = f"""
import os, subprocess, sys, time
from headwater.cli.live_table import live_table

writer = "import sys, time\\nfor n in range({_LINES}):\\n" + (
    "    sys.stderr.write(f'spark {{n}} ' + 'x' * 70 + chr(10)); time.sleep(0.02)"
)
reads = 0

def status():
    global reads
    reads += 1
    part = dict(id="0", state="RUNNING", parallelism=2, recordsPerSecond=1.0, recordsRead=reads)
    part |= dict(recordsWritten=1, lag=0, stateBytes=0, sources=["orders"], failure="")
    return dict(application="app", state="RUNNING", problems=[], subtopologies=[part] * 3)

with live_table(status):
    child = subprocess.Popen([sys.executable, "-c", writer])
    for n in range({_LINES}):
        sys.stderr.write(f"python {{n}}\\n")
        time.sleep(0.02)
    child.wait()
    while reads < 3:
        time.sleep(0.05)
print("ended")
"""


def test_lines_of_other_processes_are_above_one_table() -> None:
    shown = lines_on_screen(output_on_terminal([sys.executable, "-c", _PROGRAM]))
    assert [line for line in shown if line.startswith("spark")] == [
        f"spark {number} {'x' * 70}" for number in range(_LINES)
    ]
    assert [line for line in shown if line.startswith("python")] == [
        f"python {number}" for number in range(_LINES)
    ]
    assert sum(line.startswith("sub-topology") for line in shown) == 1
    assert sum(line.split() == ["app", "RUNNING"] for line in shown) == 1
    table = shown.index("app  RUNNING")
    assert shown[table + 5] == "ended"
    assert not any(line.startswith(("spark", "python")) for line in shown[table:])


_ENDLESS = """
import subprocess, sys
from headwater.cli.live_table import live_table

writer = '''
import sys
from itertools import count
for n in count():
    sys.stderr.write("spark" + chr(10))
    if n == 1000:
        print("ready", flush=True)
'''

def status():
    return dict(application="app", state="RUNNING", problems=[], subtopologies=[])

with live_table(status):
    child = subprocess.Popen([sys.executable, "-c", writer], stdout=subprocess.PIPE)
    child.stdout.readline()
child.kill()
child.wait()
"""


def test_the_last_table_is_complete_while_another_process_writes() -> None:
    shown = lines_on_screen(output_on_terminal([sys.executable, "-c", _ENDLESS]))
    heads = [line for line in shown if "app" in line or "sub-topology" in line]
    assert heads == [
        "app  RUNNING",
        "sub-topology  state  tasks  records/s  read  written  lag  state  reads",
    ]
    table = shown.index(heads[0])
    assert shown[table : table + 2] == heads
    # The process may end while it writes a line.
    assert all("spark".startswith(line) for line in shown[:table] + shown[table + 2 :])


_GONE = """
import sys
from headwater.cli.live_table import live_table

def status():
    return dict(application="app", state="RUNNING", problems=[], subtopologies=[])

with live_table(status):
    sys.stderr.write("ready" + chr(10))
    sys.stdin.readline()
    for _ in range(20_000):
        sys.stderr.write("spark" + chr(10))
"""


def test_a_terminal_that_is_gone_blocks_no_process() -> None:
    reading, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", _GONE], cwd=_ROOT, stdin=subprocess.PIPE, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        shown = b""
        while b"ready" not in shown:
            shown += os.read(reading, 1024)
        os.close(reading)
        try:
            process.communicate(b"\n", timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0


def test_only_the_last_table_is_printed_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=_ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("sub-topology") == 1
    assert done.stdout.endswith("ended\n")
    assert done.stderr.count("spark") == _LINES
