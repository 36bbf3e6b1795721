"""Applications on a session of the user, as docs/python.md shows it."""

import json
import re
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headwater.model.problems import ProblemCode, ProblemsError
from headwater.topology import StreamsBuilder
from headwater_spark.applications import run, session_config
from tests.runtime.spark.applications import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.broker]
_PAGE = (Path(__file__).parents[3] / "docs" / "python.md").read_text(encoding="utf-8")
_MODULE, _PROGRAM, *_ = re.findall(r"^```python\n(.*?)^```\n", _PAGE, re.MULTILINE | re.DOTALL)


def double(value: bytes | None) -> float:
    assert value is not None
    number: float = struct.unpack(">d", value)[0]
    return number


def test_the_program_of_the_guide(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    names = {"orders": cluster.unique("orders"), "totals": cluster.unique("totals")}
    id_ = cluster.unique("shop-totals")
    cluster.topics.create({**dict.fromkeys(names.values(), 2)})
    orders = [("ann", 10.0), ("bob", 5.0), ("ann", 2.5), ("bob", -1.0)]
    cluster.topics.put(
        names["orders"],
        [(name.encode(), json.dumps({"amount": amount}).encode(), 1_000) for name, amount in orders],
        0,
    )
    Path("shop_functions.py").write_text(_MODULE)
    program = (
        _PROGRAM.replace("localhost:9092", cluster.servers)
        .replace('stream("orders"', f'stream("{names["orders"]}"')
        .replace(
            '"totals", serdes={"key": "string", "value": "double"}\n',
            f'"{names["totals"]}", serdes={{"key": "string", "value": "double"}}\n',
        )
        .replace('"shop-totals"', f'"{id_}"')
        # The JVM of the session has another working directory.
        .replace('"shop_functions.py"', repr(str(tmp_path / "shop_functions.py")))
    )
    before = dict(cluster.spark.conf.getAll) if hasattr(cluster.spark.conf, "getAll") else {}
    try:
        exec(compile(program, "program.py", "exec"), {})  # noqa: S102 - a program of the guide
    finally:
        sys.modules.pop("shop_functions", None)
    written = [(record[4], double(record[5])) for record in cluster.topics.get(names["totals"])]
    assert written == [(b"ann", 12.0), (b"bob", 6.0), (b"ann", 15.0)]
    assert f"{id_}-totals-changelog" in cluster.topics.names()
    assert not before or before["spark.sql.session.timeZone"] == cluster.spark.conf.get(
        "spark.sql.session.timeZone"
    )
    assert cluster.spark.range(3).count() == 3, "the session continues"


def test_a_running_application_is_not_started_twice(cluster: Cluster) -> None:
    id_, source, sink = cluster.unique("app"), cluster.unique("in"), cluster.unique("out")
    cluster.topics.create({source: 1, sink: 1})
    builder = StreamsBuilder()
    builder.stream(source, serdes={"value": "string"}).map_values("upper(value)").to(sink)
    document = builder.document(id_)
    folders: dict[str, Any] = {
        "checkpoint": cluster.folder / "checkpoint",
        "state_dir": cluster.folder / "state",
    }
    with run(document.data, cluster.spark, bootstrap_servers=cluster.servers, **folders) as application:
        assert application.id == id_
        with pytest.raises(ProblemsError) as refused:
            run(document, cluster.spark, bootstrap_servers=cluster.servers, **folders)
        assert [problem.code for problem in refused.value.problems] == [ProblemCode.NOT_RUNNABLE]
        cluster.topics.put(source, [(b"k", b"a", 1_000)], 0)
        application.wait_until_idle()
        assert not application.wait(0)
    assert application.wait(0)
    assert application.state == "NOT_RUNNING"
    assert [record[5] for record in cluster.topics.get(sink)] == [b"A"]
    with run(document, cluster.spark, bootstrap_servers=cluster.servers, **folders) as again:
        again.wait_until_idle()
    assert len(cluster.topics.get(sink)) == 1, "committed records are not processed again"


def test_a_start_is_refused_with_all_problems(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("application: {id: a}\ntopology: [strem: {topic: x}, {to: y, from: z}]\n")
    with pytest.raises(ProblemsError) as refused:
        run(file, cluster.spark, bootstrap_servers=cluster.servers)
    assert len(refused.value.problems) > 1
    missing = StreamsBuilder()
    missing.stream(cluster.unique("missing")).process("no.such.module:Scorer").to("out")
    with pytest.raises(ProblemsError) as stopped:
        run(missing.document(cluster.unique("app")), cluster.spark, bootstrap_servers=cluster.servers)
    assert ProblemCode.MISSING_SOURCE_TOPIC in {problem.code for problem in stopped.value.problems}


def test_a_session_of_spark_connect_is_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("a").to("b")
    with pytest.raises(ProblemsError) as refused:
        run(builder.document("a"), object(), bootstrap_servers="localhost:1")  # type: ignore[arg-type]
    assert refused.value.problems[0].summary == "The session is one of Spark Connect."


def test_the_settings_of_a_session_include_the_connector(spark: SparkSession) -> None:
    settings = session_config(**{"spark.sql.shuffle.partitions": "8"})
    assert "spark-sql-kafka" in settings["spark.jars"]
    assert settings["spark.sql.shuffle.partitions"] == "8"
    assert settings["spark.stage.maxConsecutiveAttempts"] == "1"
    assert "spark.master" not in settings
    del spark
