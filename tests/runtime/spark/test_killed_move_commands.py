"""KIP-287: `headwater processors move --offline` is killed after each of its changes, on a running system.

The application on Spark was killed before, does not start meanwhile, and continues after it. Each record is
processed once, in the order of its key, and counted once.
"""

import os
import re
import signal
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from headwater.cli.main import main
from headwater.toolchain.broker import Broker
from tests.runtime.driver.dying_cluster import die_after
from tests.runtime.spark.growing_processes import DOCUMENT, GrowingApplication
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, kill_all

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

_RECORDS = 800
_MOST_CHANGES = 100


def _move(arguments: list[str], changes: int) -> None:
    """Run the command in a process of its own, which is killed before the change after so many."""
    die_after(changes)
    main(["processors", "move", "--offline", *arguments], prog_name="headwater")


def _killed_move(application: GrowingApplication, changes: int) -> bool:
    """Return whether the command was killed; false: it has completed the move."""
    arguments = [
        str(application.folder / "document.yaml"),
        "--checkpoint",
        str(application.folder / "checkpoint"),
    ]
    arguments += ["--bootstrap-server", application.broker.bootstrap_servers]
    process = get_context("spawn").Process(target=_move, args=(arguments, changes))
    process.start()
    process.join(TIMEOUT_SECONDS)
    assert process.exitcode in (os.EX_OK, -signal.SIGKILL), process.exitcode
    return process.exitcode != os.EX_OK


def _declare(application: GrowingApplication, processors: int) -> None:
    text = re.sub(r"processors: \d+", f"processors: {processors}", DOCUMENT)
    (application.folder / "document.yaml").write_text(text)


def _check_refused(application: GrowingApplication) -> None:
    """Check that the application does not start, and says why."""
    logged = application.log_size()
    with application.run() as process:
        assert process.wait(TIMEOUT_SECONDS) != os.EX_OK, application.log(logged)
    assert "processors move" in application.log(logged), application.log(logged)


@pytest.mark.parametrize("numbers", [pytest.param((4, 3), marks=pytest.mark.soak)])
def test_nothing_is_lost_or_repeated_by_a_move_that_is_killed_after_each_change(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path, numbers: tuple[int, ...]
) -> None:
    with own_broker() as broker:
        application = GrowingApplication(broker, Topics(broker.bootstrap_servers), tmp_path, spark_jars)
        application.set_up()
        application.feed(_RECORDS)
        with application.run(until_idle=False) as process:
            application.await_progress(_RECORDS // 2, process)
            kill_all(process)
        application.expand(4)
        application.topics.expand("counted-regions-repartition", 4)
        for processors in numbers:
            application.feed(_RECORDS)
            application.finish()
            _declare(application, processors)
            kills = 0
            while _killed_move(application, 1 + kills % _MOST_CHANGES):
                kills += 1
                if kills == 1:
                    _check_refused(application)
            assert kills >= 3
            application.feed(_RECORDS)
            with application.run(until_idle=False) as process:
                application.await_progress(_RECORDS // 2, process)
                kill_all(process)
        application.finish()
        application.check_results()
