"""`spark-submit` on Kubernetes as the guide shows it: the driver's pod that Spark asks an API server for."""

import json
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyspark
import pytest
from kubernetes_validate import validate  # type: ignore[import-untyped]

from headwater.toolchain import spark_java_options
from tests.deploy.conftest import DEPLOY, ROOT
from tests.deploy.test_runtime_kubernetes import accepted_by_run_main
from tests.quick_java import QUICK_JAVA

pytestmark = [pytest.mark.slow, pytest.mark.spark]

_SECONDS = 120


class _ApiServer(ThreadingHTTPServer):
    """Accepts whatever it is asked to create, and keeps it; nothing exists before."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.created: list[dict[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: _ApiServer

    def do_GET(self) -> None:
        self._answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

    def do_POST(self) -> None:
        self._create()

    def do_PATCH(self) -> None:
        self._create()

    def _create(self) -> None:
        resource = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.created.append(resource)
        resource["metadata"] |= {"uid": "1", "namespace": "headwater", "resourceVersion": "1"}
        self._answer(201, resource)

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write nothing to standard error."""


@pytest.fixture
def api_server() -> Iterator[_ApiServer]:
    with _ApiServer() as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server
        server.shutdown()
        serving.join()


def _command_of_the_guide() -> list[str]:
    guide = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^spark-submit --master k8s:.*?(?=^```)", guide, re.MULTILINE | re.DOTALL)
    return shlex.split(command.replace("\\\n", " "))


def test_the_driver_runs_the_application_in_the_image(api_server: _ApiServer, tmp_path: Path) -> None:
    program, *arguments = _command_of_the_guide()
    arguments[arguments.index("--master") + 1] = f"k8s://http://127.0.0.1:{api_server.server_port}"
    done = subprocess.run(
        [Path(pyspark.__file__).parent / "bin" / program, *arguments],
        cwd=ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "SPARK_LAUNCHER_OPTS": " ".join(QUICK_JAVA),
            "SPARK_SUBMIT_OPTS": " ".join((*QUICK_JAVA, *spark_java_options())),
        },
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [pod] = [each for each in api_server.created if each["kind"] == "Pod"]
    validate(pod, "1.34", strict=True)
    [container] = pod["spec"]["containers"]
    kind, *options = container["args"]
    assert kind == "driver"  # the entrypoint submits the rest
    at = next(index for index, option in enumerate(options) if option.endswith("/run_main.py"))
    accepted_by_run_main(options[at + 1 :])
    assert pod["spec"]["serviceAccountName"] == "headwater-spark"
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {"/etc/headwater/topologies", "/var/lib/headwater", "/opt/spark/conf"} <= mounted
    assert {"secretRef": {"name": "headwater-kafka"}} in container["envFrom"]
    settings = "".join(
        text for each in api_server.created if each["kind"] == "ConfigMap" for text in each["data"].values()
    )
    assert "spark.executor.instances=2" in settings
    assert "spark.kubernetes.authenticate.executor.serviceAccountName=headwater-spark-executor" in settings
    assert "containerPort: 9878" not in settings, "executors have no endpoint"
    assert (DEPLOY / "kubernetes" / "spark-submit" / "executor.yaml").exists()
