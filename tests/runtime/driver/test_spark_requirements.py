"""Settings of Spark that an application cannot run with: each is a problem that names it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from headwater.kafka import Connection
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater_spark.driver.preflight import check_session
from headwater_spark.driver.run.options import RunOptions
from headwater_spark.driver.run.start import start_application
from headwater_spark.driver.spark_session.requirements import session_problems, start_problems
from headwater_spark.driver.spark_session.session import SessionSettings

_CLUSTER = "spark://host:7077"
_DOCUMENT = """
application: {id: shop}
topology: [{stream: {topic: orders}}, {to: {topic: totals}}]
"""


def _before_the_start(
    master: str | None = _CLUSTER,
    conf: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Problem, ...]:
    return start_problems("shop", master=master, conf=conf or {}, environment=environment or {})


@pytest.mark.parametrize(
    ("master", "conf", "environment", "found"),
    [
        ("sc://host:15002", {}, {}, "--master sc://host:15002"),
        (None, {}, {"SPARK_REMOTE": "sc://host"}, "SPARK_REMOTE is set"),
        (None, {}, {"SPARK_CONNECT_MODE_ENABLED": "1"}, "SPARK_CONNECT_MODE_ENABLED is set"),
        (_CLUSTER, {"spark.remote": "sc://host"}, {}, "spark.remote is set"),
        (_CLUSTER, {"spark.api.mode": "connect"}, {}, "spark.api.mode = connect"),
        (_CLUSTER, {}, {"SPARK_API_MODE": "Connect"}, "spark.api.mode = connect"),
        (
            "sc://host",
            {},
            {"SPARK_REMOTE": "sc://host"},
            "--master sc://host; SPARK_REMOTE is set",
        ),
    ],
)
def test_spark_connect_is_refused_before_spark_starts(
    master: str | None, conf: Mapping[str, str], environment: Mapping[str, str], found: str
) -> None:
    (problem,) = _before_the_start(master, conf, environment)
    assert (problem.code, problem.application, problem.found) == (ProblemCode.NOT_RUNNABLE, "shop", found)
    assert problem.summary == "Spark would start a session of Spark Connect."
    assert _before_the_start(conf={"spark.api.mode": "classic"}, environment={"SPARK_REMOTE": ""}) == ()


def test_only_spark_submit_starts_a_driver_on_the_cluster() -> None:
    conf = {"spark.submit.deployMode": "cluster"}
    (problem,) = _before_the_start(conf=conf)
    assert problem.found == "spark.submit.deployMode = cluster"
    assert _before_the_start(None, conf) == ()  # this process is the driver that spark-submit has started
    assert _before_the_start(conf={"spark.submit.deployMode": "client"}) == ()


def test_the_command_refuses_spark_connect_before_it_starts_a_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater_spark.driver.run.start.JvmStart", None)
    (tmp_path / "shop.yaml").write_text(_DOCUMENT)
    options = RunOptions(
        file=tmp_path / "shop.yaml",
        connection=Connection(bootstrap_servers=("localhost:1",)),
        master="sc://host",
    )
    with pytest.raises(ProblemsError, match="Spark Connect"):
        start_application(options)


@pytest.mark.parametrize("master", ["local[2]", _CLUSTER, "local-cluster[2,1,1024]"])
def test_the_settings_of_headwater_are_accepted_and_copies_of_tasks_are_not(master: str) -> None:
    own = SessionSettings(application="a", master=master).spark()
    assert session_problems("shop", master=master, conf=own) == ()
    for value in ("true", "TRUE"):
        (problem,) = session_problems("shop", master=master, conf={**own, "spark.speculation": value})
        assert (problem.code, problem.found) == (ProblemCode.NOT_RUNNABLE, f"spark.speculation = {value}")
    assert session_problems("shop", master=master, conf={**own, "spark.speculation": "false"}) == ()


@pytest.mark.parametrize(
    ("master", "is_refused"),
    [("local", False), ("local[2]", False), ("local-cluster[2,1,1024]", True), (_CLUSTER, True)],
)
def test_repeated_stages_are_refused_where_tasks_run_in_other_processes(
    master: str, *, is_refused: bool
) -> None:
    for conf in ({}, {"spark.stage.maxConsecutiveAttempts": "2"}):
        found = [each.found for each in session_problems("shop", master=master, conf=conf)]
        value = conf.get("spark.stage.maxConsecutiveAttempts", "4")
        assert found == ([f"spark.stage.maxConsecutiveAttempts = {value}"] if is_refused else [])


def test_all_problems_of_a_session_are_reported_together() -> None:
    conf = {"spark.speculation": "true", "spark.stage.maxConsecutiveAttempts": "4"}
    assert len(session_problems("shop", master=_CLUSTER, conf=conf)) == len(conf)


@attrs.frozen
class _ClassicSession:
    """The part of a classic session that has its settings."""

    conf: Mapping[str, str]
    master: str = "local[2]"
    _jsparkSession: object = None  # noqa: N815 - as in PySpark

    @property
    def sparkContext(self) -> "_ClassicSession":  # noqa: N802 - same
        return self

    def getConf(self) -> "_ClassicSession":  # noqa: N802 - same
        return self

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - same
        return list(self.conf.items())


def test_a_session_is_checked_with_its_own_settings() -> None:
    fit: Any = _ClassicSession({})
    check_session(fit, "shop")
    copies: Any = _ClassicSession({"spark.speculation": "true"})
    with pytest.raises(ProblemsError, match="copies of slow tasks"):
        check_session(copies, "shop")
    connect: Any = object()
    with pytest.raises(ProblemsError, match=r"one of Spark Connect\."):
        check_session(connect, "shop")
