"""Tests of the Kubernetes manifests: valid, consistent with each other and with the program."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import validate  # type: ignore[import-untyped]

from headwater.control import Access, Surface
from headwater.control.answers import Request, answer_request
from headwater.spec import load_documents
from tests.deploy.conftest import DEPLOY

_KUBERNETES = DEPLOY / "kubernetes"
_VERSIONS = ("1.30", "1.34", "1.37")


def _resources(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted((_KUBERNETES / folder).glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if "kind" in document:
                yield file.name, document


def _of_kind(kind: str, folder: str = "base") -> Any:  # noqa: ANN401 - YAML
    [found] = [document for _, document in _resources(folder) if document["kind"] == kind]
    return found


@pytest.fixture(scope="module")
def container() -> Mapping[str, Any]:
    [container] = _of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(container)


@pytest.mark.parametrize("version", _VERSIONS)
def test_resources_are_valid(version: str) -> None:
    documents = [document for folder in ("base", "example") for _, document in _resources(folder)]
    kinds = {document["kind"] for document in documents}
    assert {
        "Deployment",
        "Service",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "ServiceAccount",
        "Namespace",
    } < kinds
    for document in documents:
        if not document["apiVersion"].startswith("kustomize"):
            validate(document, version, strict=True)


@pytest.mark.parametrize("folder", ["base", "example", "prometheus-operator"])
def test_a_kustomization_lists_all_files_of_its_folder(folder: str) -> None:
    files = {
        name for name, document in _resources(folder) if not document["apiVersion"].startswith("kustomize")
    }
    kustomization = yaml.safe_load((_KUBERNETES / folder / "kustomization.yaml").read_text(encoding="utf-8"))
    listed = [*kustomization["resources"], *kustomization.get("components", ())]
    assert all((_KUBERNETES / folder / path).exists() for path in listed)
    assert {path for path in listed if "/" not in path} == files
    # It would add the agents' labels to the selector of the DNS servers, too.
    assert not any(each.get("includeSelectors") for each in kustomization.get("labels", ()))


def test_selectors_select_the_agents() -> None:
    template = _of_kind("Deployment")["spec"]["template"]["metadata"]["labels"]
    selectors = (
        _of_kind("Deployment")["spec"]["selector"]["matchLabels"],
        _of_kind("Service")["spec"]["selector"],
        _of_kind("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        _of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    )
    assert all(selector == template for selector in selectors)
    monitored = _of_kind("ServiceMonitor", "prometheus-operator")["spec"]
    [labels] = [
        each["pairs"]
        for each in yaml.safe_load((_KUBERNETES / "base" / "kustomization.yaml").read_text())["labels"]
    ]
    assert monitored["selector"]["matchLabels"].items() <= labels.items()
    ports = {port["name"] for port in _of_kind("Service")["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitored["endpoints"]} <= ports


def test_pods_of_applications_are_monitored() -> None:
    """Their alerts need them, with and without the operator of Spark, whose drivers have no service."""
    monitored = _of_kind("PodMonitor", "prometheus-operator")["spec"]
    pod = _of_kind("Deployment", "runtime")["spec"]["template"]
    driver = _of_kind("SparkApplication", "spark")["spec"]["driver"]
    template = yaml.safe_load((_KUBERNETES / "spark-submit" / "driver.yaml").read_text(encoding="utf-8"))
    for labels, ports in (
        (pod["metadata"]["labels"], pod["spec"]["containers"][0]["ports"]),
        (driver["labels"], driver["ports"]),
        (template["metadata"]["labels"], template["spec"]["containers"][0]["ports"]),
    ):
        assert monitored["selector"]["matchLabels"].items() <= labels.items()
        assert {each["port"] for each in monitored["podMetricsEndpoints"]} <= {each["name"] for each in ports}


def test_the_program_accepts_the_arguments(
    container: Mapping[str, Any], accepts: Callable[[Iterable[str]], None]
) -> None:
    accepts(container["args"])
    [port] = [str(each["containerPort"]) for each in container["ports"]]
    assert f"--http=0.0.0.0:{port}" in container["args"]
    annotations = _of_kind("Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == port


def test_probes_use_existing_paths_and_ports(container: Mapping[str, Any]) -> None:
    surface, access = Surface.create("agent-1"), Access("0.0.0.0", 9878)  # noqa: S104 - as in the container
    names = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        http_get = container[probe]["httpGet"]
        request = Request("GET", http_get["path"], {}, lambda _: b"")
        assert answer_request(request, surface, access).status == 200
        assert http_get["port"] in names


def test_the_agent_has_minimal_permissions(container: Mapping[str, Any]) -> None:
    pod = _of_kind("Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]
    policy = _of_kind("NetworkPolicy")["spec"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    assert all(rule["from"] for rule in policy["ingress"])
    assert all(_is_limited(rule) for rule in policy["egress"])


def test_the_example_adds_egress_to_few_addresses_only() -> None:
    kustomization = yaml.safe_load(
        (_KUBERNETES / "example" / "kustomization.yaml").read_text(encoding="utf-8")
    )
    [patch] = kustomization["patches"]
    rules = [change["value"] for change in yaml.safe_load(patch["patch"])]
    assert rules
    assert all(_is_limited(rule) for rule in rules)


def _is_limited(rule: Mapping[str, Any]) -> bool:
    """Return whether an egress rule names its ports, and the pods, namespaces or addresses."""
    peers = rule.get("to", [])
    named = [
        peer.get("ipBlock", {}).get("cidr") not in (None, "0.0.0.0/0", "::/0")
        or bool(peer.get("namespaceSelector", {}).get("matchLabels"))
        for peer in peers
    ]
    return bool(peers) and all(named) and bool(rule.get("ports"))


def test_secrets_are_referenced_and_never_contained(container: Mapping[str, Any]) -> None:
    assert all("value" not in variable for variable in container["env"])
    assert not [document for _, document in _resources("example") if document["kind"] == "Secret"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted["topologies"] in container["args"]


def test_the_example_replaces_the_image(container: Mapping[str, Any]) -> None:
    images = {}
    for folder in ("base", "example"):
        kustomization = yaml.safe_load(
            (_KUBERNETES / folder / "kustomization.yaml").read_text(encoding="utf-8")
        )
        [images[folder]] = kustomization["images"]
    assert images["base"]["name"] == images["example"]["name"] == container["image"]
    assert images["base"]["newTag"] == version("headwater")
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", images["example"]["digest"])
    assert "newTag" not in images["example"]
    assert images["example"]["newName"].endswith(f"/{container['image']}")


def test_the_documents_of_the_example_are_valid() -> None:
    kustomization = yaml.safe_load(
        (_KUBERNETES / "example" / "kustomization.yaml").read_text(encoding="utf-8")
    )
    [generated] = kustomization["configMapGenerator"]
    loaded = load_documents([_KUBERNETES / "example" / file for file in generated["files"]])
    assert [document.application.id for document in loaded.documents] == ["orders-app"]
    assert not loaded.problems


def test_documents_in_a_config_map_volume_are_read_once(tmp_path: Path) -> None:
    """Kubernetes puts the files in a hidden folder and links to them, to replace all of them at once."""
    (tmp_path / "..2026_11_21").mkdir()
    content = (_KUBERNETES / "example" / "orders.yaml").read_text(encoding="utf-8")
    (tmp_path / "..2026_11_21" / "orders.yaml").write_text(content, encoding="utf-8")
    (tmp_path / "..data").symlink_to("..2026_11_21")
    (tmp_path / "orders.yaml").symlink_to("..data/orders.yaml")
    loaded = load_documents([tmp_path])
    assert len(loaded.documents) == 1
    assert not loaded.problems
