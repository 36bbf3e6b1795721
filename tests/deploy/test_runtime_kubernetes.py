"""Tests of the manifests of the runtime: valid for Kubernetes and Spark's operator, and for the programs."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from kubernetes_validate import validate  # type: ignore[import-untyped]

from headwater.spec import load_documents
from run_main import command as run_main
from tests.deploy.conftest import DEPLOY
from tests.toolchain.programs import ensure_spark_operator

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the definition has 800 kB
_KUBERNETES = DEPLOY / "kubernetes"
_VERSIONS = ("1.30", "1.34", "1.37")
"""The oldest, a middle and the newest version of Kubernetes."""


def _resources(folder: str) -> Iterator[dict[str, Any]]:
    for file in sorted((_KUBERNETES / folder).glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if document.get("kind", "Kustomization") != "Kustomization":
                yield document


def _of_kind(kind: str, folder: str) -> Any:  # noqa: ANN401 - YAML
    [found] = _all_of_kind(kind, folder)
    return found


def _all_of_kind(kind: str, folder: str) -> list[Any]:
    return [document for document in _resources(folder) if document["kind"] == kind]


@cache
def spark_application_validator() -> Validator:
    """Return the validator of `SparkApplication` of the operator's own definition, without unknown fields.

    The schema itself is not checked, because that takes a second.
    """
    file = (
        ensure_spark_operator() / "config" / "crd" / "bases" / "sparkoperator.k8s.io_sparkapplications.yaml"
    )
    definition = yaml.load(file.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - derived from the safe one
    [version] = [each for each in definition["spec"]["versions"] if each["name"] == "v1beta2"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    _forbid_unknown_fields(schema["properties"]["spec"])
    return Draft202012Validator(schema)


def _forbid_unknown_fields(schema: object) -> None:
    if isinstance(schema, dict):
        is_open = schema.get("x-kubernetes-preserve-unknown-fields")
        if "properties" in schema and "additionalProperties" not in schema and not is_open:
            schema["additionalProperties"] = False
        for each in schema.values():
            _forbid_unknown_fields(each)
    elif isinstance(schema, list):
        for each in schema:
            _forbid_unknown_fields(each)


@pytest.mark.parametrize("version", _VERSIONS)
def test_resources_are_valid(version: str) -> None:
    documents = [*_resources("runtime"), *_resources("spark")]
    kinds = {document["kind"] for document in documents}
    assert {"Deployment", "Service", "ServiceAccount", "Role", "RoleBinding", "SparkApplication"} <= kinds
    for document in documents:
        if "spark" not in document["apiVersion"] and "version" not in document:
            validate(document, version, strict=True)


@pytest.mark.slow
def test_the_spark_application_is_valid_for_the_operator() -> None:
    application = _of_kind("SparkApplication", "spark")
    spark_application_validator().validate(application)
    application["spec"]["drivers"] = application["spec"].pop("driver")
    with pytest.raises(ValidationError):
        spark_application_validator().validate(application)


def test_the_programs_accept_the_arguments(accepts: Callable[[Iterable[str]], None]) -> None:
    [container] = _of_kind("Deployment", "runtime")["spec"]["template"]["spec"]["containers"]
    accepts(container["args"])
    [port] = [str(each["containerPort"]) for each in container["ports"]]
    assert f"--http=0.0.0.0:{port}" in container["args"]
    accepted_by_run_main(_of_kind("SparkApplication", "spark")["spec"]["arguments"])


def accepted_by_run_main(arguments: list[str]) -> None:
    """Fail unless the program of `spark-submit` takes these arguments."""
    document = _KUBERNETES / "spark" / arguments[0].rpartition("/")[2]
    made = run_main.make_context("run_main.py", [str(document), *arguments[1:]])
    assert made.params["document"] == document


@pytest.mark.parametrize("folder", ["runtime", "spark"])
def test_a_kustomization_has_all_files_of_its_folder(folder: str) -> None:
    made = yaml.safe_load((_KUBERNETES / folder / "kustomization.yaml").read_text(encoding="utf-8"))
    [generated] = made["configMapGenerator"]
    listed = {"kustomization.yaml", *made["resources"], *generated["files"]}
    assert listed == {file.name for file in (_KUBERNETES / folder).iterdir()}
    loaded = load_documents([_KUBERNETES / folder / file for file in generated["files"]])
    assert [document.application.id for document in loaded.documents] == ["orders-app"]
    assert not loaded.problems


def test_pods_have_few_rights() -> None:
    spark = _of_kind("SparkApplication", "spark")["spec"]
    pod = _of_kind("Deployment", "runtime")["spec"]["template"]["spec"]
    pods = [
        pod["securityContext"],
        spark["driver"]["podSecurityContext"],
        spark["executor"]["podSecurityContext"],
    ]
    assert all(each["runAsNonRoot"] and each["runAsUser"] == 10001 for each in pods)
    containers = [
        pod["containers"][0]["securityContext"],
        *(spark[each]["securityContext"] for each in _PODS),
    ]
    assert all(each["allowPrivilegeEscalation"] is False for each in containers)
    assert all(each["capabilities"] == {"drop": ["ALL"]} for each in containers)
    assert pod["automountServiceAccountToken"] is False
    [rule] = _of_kind("Role", "spark")["rules"]
    assert "secrets" not in rule["resources"]
    assert "*" not in (*rule["resources"], *rule["verbs"], *rule["apiGroups"])


_PODS = ("driver", "executor")


def test_control_requests_need_the_token_of_the_secret() -> None:
    """Executors serve no control requests, so they do not get the token."""
    [container] = _of_kind("Deployment", "runtime")["spec"]["template"]["spec"]["containers"]
    driver = yaml.safe_load((_KUBERNETES / "spark-submit" / "driver.yaml").read_text(encoding="utf-8"))
    [submitted] = driver["spec"]["containers"]
    spark = _of_kind("SparkApplication", "spark")["spec"]
    reference = {"secretKeyRef": {"name": "headwater-control", "key": "token", "optional": True}}
    token = {"name": "HEADWATER_CONTROL_TOKEN", "valueFrom": reference}
    assert all(token in each["env"] for each in (container, submitted, spark["driver"]))
    assert token not in spark["executor"]["env"]


def test_executors_have_no_rights_and_no_token() -> None:
    """Without a service account of their own, they get the account of the driver from Spark."""
    spark = _of_kind("SparkApplication", "spark")["spec"]
    driver, executor = (spark[each]["serviceAccount"] for each in _PODS)
    assert executor != driver
    accounts = {each["metadata"]["name"]: each for each in _all_of_kind("ServiceAccount", "spark")}
    assert accounts[executor]["automountServiceAccountToken"] is False
    [subject] = _of_kind("RoleBinding", "spark")["subjects"]
    assert subject["name"] == driver
    template = yaml.safe_load((_KUBERNETES / "spark-submit" / "executor.yaml").read_text(encoding="utf-8"))
    assert template["spec"]["automountServiceAccountToken"] is False
    guide = (DEPLOY.parent / "docs" / "runtime.md").read_text(encoding="utf-8")
    assert f"--conf spark.kubernetes.authenticate.driver.serviceAccountName={driver} " in guide
    assert f"--conf spark.kubernetes.authenticate.executor.serviceAccountName={executor} " in guide


def test_the_service_accounts_can_be_applied_without_kustomize() -> None:
    """The API server rejects a subject without a namespace.

    Kustomize updates the namespace of a subject only if the service account has the same one.
    """
    binding = _of_kind("RoleBinding", "spark")
    [subject] = binding["subjects"]
    accounts = _all_of_kind("ServiceAccount", "spark")
    namespaces = {each["metadata"]["namespace"] for each in (binding, _of_kind("Role", "spark"), *accounts)}
    assert namespaces == {subject["namespace"]}
    kustomization = (_KUBERNETES / "spark" / "kustomization.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(kustomization)["namespace"] == subject["namespace"]


def test_writable_paths_are_volumes() -> None:
    """The file system of the container is read-only."""
    pod = _of_kind("Deployment", "runtime")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    for option in ("--checkpoint=", "--state-dir="):
        [argument] = [each for each in container["args"] if each.startswith(option)]
        assert any(argument.removeprefix(option).startswith(f"{path}/") for path in writable)
    [temporary] = [each for each in pod["volumes"] if each["name"] == "tmp"]
    assert temporary["emptyDir"]["sizeLimit"]
