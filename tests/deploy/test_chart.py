"""Tests of the Helm chart, rendered by Helm: valid, and the same as the other manifests."""

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import validate  # type: ignore[import-untyped]

from tests.deploy.conftest import DEPLOY, ROOT
from tests.deploy.test_runtime_kubernetes import accepted_by_run_main, spark_application_validator

pytestmark = pytest.mark.slow

_CHART = DEPLOY / "helm" / "headwater"
_VERSIONS = ("1.30", "1.37")
_DIGEST = "sha256:" + "0" * 64
_DOCUMENT: Mapping[str, Any] = {
    "application": {"id": "orders-app"},
    "topology": [{"stream": {"topic": "orders"}}, {"to": {"topic": "copies"}}],
}
_TEXT = "application: {id: sums-app}\ntopology:\n  - stream: {topic: orders}\n  - to: {topic: sums}\n"
_AGENT: Mapping[str, Any] = {
    "image": {"repository": "registry.example.com/headwater-agent", "digest": _DIGEST},
    "documents": {"orders.yaml": _DOCUMENT, "sums.yaml": _TEXT},
}
_RUNTIME: Mapping[str, Any] = {"repository": "registry.example.com/headwater-runtime", "digest": _DIGEST}
_COMPLETE: Mapping[str, Any] = {
    "agent": _AGENT,
    "runtime": {
        "image": _RUNTIME,
        "applications": {
            "orders-app": {"document": _DOCUMENT},
            "sums-app": {
                "document": _TEXT,
                "mode": "spark-operator",
                "slots": 4,
                "executors": 3,
                "arguments": ["--max-records=1000"],
                "sparkConf": {"spark.task.maxFailures": "8"},
            },
        },
    },
    "prometheusOperator": {"enabled": True},
}

Render = Callable[[Mapping[str, Any]], list[dict[str, Any]]]


@pytest.fixture
def template(helm: Path, tmp_path: Path) -> Callable[[Mapping[str, Any]], "subprocess.CompletedProcess[str]"]:
    def run(values: Mapping[str, Any]) -> "subprocess.CompletedProcess[str]":
        file = tmp_path / "values.json"
        file.write_text(json.dumps(values), encoding="utf-8")
        command: list[str | Path] = [
            helm,
            "template",
            "kafka",
            _CHART,
            "--namespace",
            "headwater",
            "--values",
            file,
        ]
        environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def render(template: Callable[[Mapping[str, Any]], "subprocess.CompletedProcess[str]"]) -> Render:
    def run(values: Mapping[str, Any]) -> list[dict[str, Any]]:
        done = template(values)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    return run


def _of_kind(kind: str, resources: Iterable[Mapping[str, Any]], name: str | None = None) -> Any:  # noqa: ANN401
    [found] = [
        resource
        for resource in resources
        if resource["kind"] == kind and name in (None, resource["metadata"]["name"])
    ]
    return found


def test_resources_are_valid(render: Render) -> None:
    resources = render(_COMPLETE)
    for resource in resources:
        if resource["kind"] == "SparkApplication":
            spark_application_validator().validate(resource)
        elif resource["kind"] != "PodMonitor":
            for version in _VERSIONS:
                validate(resource, version, strict=True)
    names = [(resource["kind"], resource["metadata"]["name"]) for resource in resources]
    assert len(names) == len(set(names))


def test_agents_are_those_of_the_kustomize_base(render: Render) -> None:
    rendered = _of_kind("Deployment", render({"agent": _AGENT}))["spec"]
    file = DEPLOY / "kubernetes" / "base" / "deployment.yaml"
    expected = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
    for spec in (rendered, expected):
        spec["selector"] = spec["template"]["metadata"]["labels"] = None
        pod = spec["template"]["spec"]
        pod["topologySpreadConstraints"][0]["labelSelector"] = None
        pod["serviceAccountName"] = pod["volumes"][0]["configMap"]["name"] = ""
        pod["containers"][0]["image"] = ""
    assert rendered == expected


def test_network_policies_are_those_of_the_kustomize_base(render: Render) -> None:
    rule = {"to": [{"ipBlock": {"cidr": "192.0.2.0/28"}}], "ports": [{"port": 9092, "protocol": "TCP"}]}
    policy = {"networkPolicy": {"egress": [rule]}}
    rendered = _of_kind("NetworkPolicy", render({"agent": {**_AGENT, **policy}}))["spec"]
    file = DEPLOY / "kubernetes" / "base" / "network-policy.yaml"
    expected = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
    assert rendered["ingress"] == expected["ingress"]
    assert rendered["egress"] == [*expected["egress"], rule]


def test_applications_are_those_of_the_manifests(render: Render) -> None:
    applications = {
        "orders-app": {"document": _DOCUMENT},
        "spark-app": {"document": _DOCUMENT, "mode": "spark-operator"},
    }
    resources = render({"agent": _AGENT, "runtime": {"image": _RUNTIME, "applications": applications}})
    file = DEPLOY / "kubernetes" / "runtime" / "deployment.yaml"
    expected = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
    rendered = _of_kind("Deployment", resources, "orders-app")["spec"]
    del rendered["template"]["metadata"]["annotations"]["headwater.io/document"]
    for spec in (rendered, expected):
        spec["template"]["spec"]["containers"][0]["image"] = ""
    assert rendered == expected
    file = DEPLOY / "kubernetes" / "spark" / "spark-application.yaml"
    expected = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
    rendered = _of_kind("SparkApplication", resources)["spec"]
    del rendered["driver"]["annotations"]["headwater.io/document"]
    for spec in (rendered, expected):
        spec["image"] = spec["driver"]["serviceAccount"] = spec["volumes"][0]["configMap"]["name"] = ""
        spec["driver"]["labels"]["app.kubernetes.io/instance"] = spec["executor"]["serviceAccount"] = ""
    assert rendered == expected


def test_executors_have_no_rights_and_no_token(render: Render) -> None:
    """Without a service account of their own, they get the account of the driver from Spark."""
    resources = render(_COMPLETE)
    executor = _of_kind("SparkApplication", resources)["spec"]["executor"]["serviceAccount"]
    assert _of_kind("ServiceAccount", resources, executor)["automountServiceAccountToken"] is False
    [subject] = _of_kind("RoleBinding", resources)["subjects"]
    assert subject["name"] != executor


@pytest.mark.parametrize("memory", ["1624Mi", "2Gi", "8Gi"])
def test_an_application_requests_the_memory_of_its_limit(render: Render, memory: str) -> None:
    resources = render(_application(heap="1g", memory=memory))
    [container] = _of_kind("Deployment", resources, "a")["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": memory}
    assert container["resources"]["requests"]["memory"] == memory


def _application(**values: str) -> Mapping[str, Any]:
    application = {"document": _DOCUMENT, **values}
    return {"agent": _AGENT, "runtime": {"image": _RUNTIME, "applications": {"a": application}}}


def test_the_values_of_the_guide_are_accepted(render: Render) -> None:
    guide = (ROOT / "docs" / "agent-operations.md").read_text(encoding="utf-8")
    [values] = re.findall(r"```yaml\n(agent:\n.*?)```", guide, re.DOTALL)
    names = {(each["kind"], each["metadata"]["name"]) for each in render(yaml.safe_load(values))}
    assert {("Deployment", "kafka-agent"), ("Deployment", "sums-app")} <= names


def test_files_are_next_to_the_document_and_restart_the_application(render: Render) -> None:
    def rendered(text: str) -> tuple[Mapping[str, str], str]:
        applications = {"a": {"document": _DOCUMENT, "files": {"order.avsc": text}}}
        resources = render(
            {"agent": {"enabled": False}, "runtime": {"image": _RUNTIME, "applications": applications}}
        )
        pod = _of_kind("Deployment", resources)["spec"]["template"]
        return _of_kind("ConfigMap", resources)["data"], pod["metadata"]["annotations"][
            "headwater.io/document"
        ]

    (data, before), (_, after) = rendered('{"type": "string"}\n'), rendered('"long"\n')
    assert data["order.avsc"] == '{"type": "string"}\n'
    assert yaml.safe_load(data["application.yaml"]) == _DOCUMENT
    assert before != after


def test_documents_are_written_as_they_are(render: Render) -> None:
    documents = _of_kind("ConfigMap", render({"agent": _AGENT}))["data"]
    assert yaml.safe_load(documents["orders.yaml"]) == _DOCUMENT
    assert documents["sums.yaml"] == _TEXT


def test_the_programs_accept_the_arguments(render: Render, accepts: Callable[[Iterable[str]], None]) -> None:
    resources = render(_COMPLETE)
    for resource in resources:
        if resource["kind"] == "Deployment":
            [container] = resource["spec"]["template"]["spec"]["containers"]
            accepts(container["args"])
    spark = _of_kind("SparkApplication", resources)["spec"]
    accepted_by_run_main(spark["arguments"])
    assert spark["arguments"][-1] == "--max-records=1000"
    assert spark["executor"]["instances"] == 3
    assert spark["executor"]["cores"] == 4
    assert spark["sparkConf"]["spark.task.maxFailures"] == "8"


def test_a_changed_document_restarts_its_application_only(render: Render) -> None:
    def digests(sink: str) -> dict[str, str]:
        document = {**_DOCUMENT, "topology": [*_DOCUMENT["topology"][:1], {"to": {"topic": sink}}]}
        applications = {"orders-app": {"document": document}, "sums-app": {"document": _TEXT}}
        resources = render(
            {"agent": {"enabled": False}, "runtime": {"image": _RUNTIME, "applications": applications}}
        )
        return {
            resource["metadata"]["name"]: resource["spec"]["template"]["metadata"]["annotations"][
                "headwater.io/document"
            ]
            for resource in resources
            if resource["kind"] == "Deployment"
        }

    before, after = digests("copies"), digests("archive")
    assert {name for name in before if before[name] != after[name]} == {"orders-app"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "Set agent.documents to the topology documents"),
        ({"agent": {"documents": {"a.yaml": _TEXT}}}, "Set agent.image.repository to the image"),
        (
            {"agent": {"documents": {"a.yaml": _TEXT}, "image": {"repository": "a"}}},
            "Set agent.image.digest to the digest",
        ),
        (
            {"agent": {"enabled": False}, "runtime": {"applications": {"a": {"document": _TEXT}}}},
            "Set runtime.image.repository to the image",
        ),
        ({"agent": {**_AGENT, "replica": 3}}, "replica"),
        ({"agent": {**_AGENT, "image": {"repository": "a", "digest": "latest"}}}, "digest"),
        ({"agent": _AGENT, "runtime": {"applications": {"Orders": {"document": _TEXT}}}}, "Orders"),
        ({"agent": _AGENT, "runtime": {"applications": {"a": {"mode": "pod"}}}}, "document"),
        (
            {"agent": _AGENT, "runtime": {"applications": {"a": {"document": {}, "files": {"a/b": "c"}}}}},
            "a/b",
        ),
        (_application(memory="1Gi"), "Set runtime.applications.a.memory (1Gi) to at least 1624Mi"),
        (_application(heap="3g"), "Set runtime.applications.a.memory (3Gi) to at least 3672Mi"),
        (_application(heap="500m", memory="1099Mi"), "(1099Mi) to at least 1100Mi"),
    ],
)
def test_values_that_are_wrong_or_missing_are_named(
    template: Callable[[Mapping[str, Any]], "subprocess.CompletedProcess[str]"],
    values: Mapping[str, Any],
    expected: str,
) -> None:
    done = template(values)
    assert done.returncode != 0
    assert expected in done.stderr


def test_helm_finds_nothing_to_criticize(helm: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.json"
    file.write_text(json.dumps(_COMPLETE), encoding="utf-8")
    command: list[str | Path] = [helm, "lint", "--strict", _CHART, "--values", file]
    done = subprocess.run(command, env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
