"""The parts of a start are read from the log of a driver."""

from datetime import UTC, datetime

from tests.runtime.hosts.start_parts import start_parts

_LOG = """\
2026-11-26T15:44:57.000000Z [info     ] starting Spark                 application=counted
2026-11-26T15:44:59.000000Z [info     ] state changed                  application=counted old=A new=RUNNING
2026-11-26T15:47:42.851499Z [info     ] starting Spark                 application=counted
2026-11-26T15:47:43.468Z [spark WARN] HeartbeatReceiver: starting Spark
2026-11-26T15:47:51.847085Z [warning  ] client takes over: the active one is silent seconds=9
error[NotRunnable] Another client of counted is active.
2026-11-26T15:47:54.555112Z [info     ] state changed                  application=counted old=B new=RUNNING
2026-11-26T15:48:54.555112Z [info     ] state changed                  application=counted old=B new=RUNNING
"""


def test_the_parts_of_a_start_are_read_from_its_log() -> None:
    since = datetime(2026, 11, 26, 15, 47, 40, tzinfo=UTC).timestamp()
    found = start_parts(_LOG, since)
    assert found == {"Spark is being started": 2.9, "takeover": 11.8, "running": 14.6}
