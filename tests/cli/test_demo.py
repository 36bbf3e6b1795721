"""`headwater demo`, as `make demo` runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli.console import ExitCode
from headwater.cli.demo.command import Result, shorten_output
from headwater.cli.demo.steps import STEPS, Observation
from headwater.model.cluster import LiveTopic
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.kafka import ensure_kafka_streams
from headwater.toolchain.pulumi_cli import Finished
from headwater.toolchain.streams_library import ensure_streams_library
from tests.preloaded import folder_of_shims
from tests.pulumi.driver import time_saving_variables

_PRELOADED = """
import sys
from headwater.cli.demo import environment as demo
from headwater.cli.main import main
from headwater.toolchain import pulumi_cli

programs, run_in_session = sys.argv[1], pulumi_cli.run_in_session

def run(command, *, environment, **options):
    if command[1:3] == ["-m", "headwater.cli"] and command[3] != "run":
        command = [programs + "/headwater", *command[3:]]
    path = ":".join((programs, environment["PATH"]))
    return run_in_session(command, environment={**environment, "PATH": path}, **options)

pulumi_cli.run_in_session = demo.run_in_session = run
main(["demo"])
"""
"""The demo, whose commands are forks of a process that has imported their modules, except `headwater run`."""


@pytest.mark.pulumi
@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("kafka_distribution", "pulumi_toolchain")
def test_all_steps_go_as_expected_and_everything_is_stopped_and_removed(tmp_path: Path) -> None:
    ensure_streams_library()
    ensure_kafka_streams()
    done = subprocess.run(
        [sys.executable, "-c", _PRELOADED, folder_of_shims()],
        env={**os.environ, "TMPDIR": str(tmp_path), **time_saving_variables()},
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.DONE, done.stdout + done.stderr
    assert f"All {len(STEPS)} steps went as expected" in done.stdout
    assert done.stderr == ""
    assert not list(tmp_path.glob("headwater-demo-*"))
    assert not _processes_of(tmp_path)


@pytest.mark.pulumi
@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.usefixtures("kafka_distribution", "pulumi_toolchain")
def test_a_demo_that_sigterm_ends_is_stopped_and_removed(tmp_path: Path) -> None:
    ensure_streams_library()
    ensure_kafka_streams()
    with subprocess.Popen(
        [sys.executable, "-m", "headwater.cli", "demo"],
        env={**os.environ, "TMPDIR": str(tmp_path), **time_saving_variables()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert until(lambda: any(tmp_path.glob("headwater-demo-*/*")), 120)
        process.terminate()
        _, errors = process.communicate()
    assert (process.returncode, errors.strip()) == (130, "Interrupted.")
    assert not list(tmp_path.glob("headwater-demo-*"))
    assert until(lambda: not _processes_of(tmp_path), 60)


def _processes_of(folder: Path) -> list[str]:
    """Return the command lines of processes that contain the folder, as the broker's does."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def live(topic_id: str, partitions: int) -> LiveTopic:
    return LiveTopic("t", topic_id, partitions, 1)


def test_observation_contains_the_changed_topics() -> None:
    before = {"kept": live("1", 4), "expanded": live("2", 4), "replaced": live("3", 4), "gone": live("4", 4)}
    after = {"kept": live("1", 4), "expanded": live("2", 6), "replaced": live("9", 4), "new": live("5", 4)}
    observed = Observation.from_command(Finished(0, ""), before, after)
    assert (observed.created, observed.expanded) == (1, {"expanded": 6})
    assert observed.replaced == {"replaced"}
    assert observed.deleted == {"gone"}
    assert str(observed) == (
        "succeeds; 1 topic created, 1 topic expanded to 6, replaced REPLACED, gone DELETED"
    )


def test_result_is_compared_with_the_expectation() -> None:
    (step, *_) = STEPS
    assert not Result(step, Observation(succeeded=False), 1.0).is_expected
    assert Result(step, step.expected, 1.0).is_expected


def test_output_is_shortened_to_headwaters_texts_and_the_summary() -> None:
    text = (
        "Previewing update (demo):\n@ previewing update....\n"
        " +  kafka:index:Topic orders create \n"
        "Diagnostics:\n  pulumi:pulumi:Stack (headwater-demo):\n"
        "    error: error[Timeout] Too slow.\n      fix  Hurry.\n"
        "    error: an unhandled error occurred: program exited\n\n"
        "Resources:\n    1 errored\n"
    )
    assert (
        shorten_output(text) == "    error[Timeout] Too slow.\n      fix  Hurry.\n\nResources:\n    1 errored"
    )
