"""A module of decisions has tests with its name: a newcomer finds them without a search.

They are `test_<module>.py`, also with the package before it (`test_config_check.py` for `configs/check.py`),
or documents with the name of the module and golden texts next to them. They are anywhere below the folder of
the package in `PACKAGES`; other packages have no such rule.
"""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "agent/decide": "agent",
    "compiler": "compiler",
    "describe": "describe",
    "planner": "planner",
    "planner/acls": "acls",
    "planner/drift": "drift",
    "planner/policies": "policies",
    "planner/upgrade": "upgrade",
}
"""Package of decisions in `infra/headwater` → folder of its tests. The longest name counts."""
ELSEWHERE = {
    "compiler/cluster_profiles": "clusters/test_cluster_profiles",
    "compiler/compilation": "compiler/test_properties",
    "compiler/configs/table": "oracle/test_configs",
    "compiler/counting": "compiler/test_copartitioning",
    "compiler/dsl/declarations": "compiler/dsl/test_cases",
    "compiler/dsl/handles": "compiler/dsl/test_document",
    "compiler/dsl/write": "compiler/dsl/test_scale",
    "compiler/java/pattern_tree": "compiler/test_java_patterns",
    "compiler/pipeline": "compiler/test_properties",
    "describe/pushed": "oracle/test_streams_groups",
    "planner/policies/subject": "policies/test_checks",
    "planner/upgrade/changes": "upgrade/test_find",
}
"""Module whose rules are tested under another name → the tests."""
TEXTS = ("messages", "problems")
"""Modules with these names at the end build texts, which golden files compare."""
OTHER_CASES = ("planner/edits/",)
"""Its tests are named after what happens to topics, stores and operators."""


@cache
def _modules() -> list[str]:
    """Return the modules of decisions with a function, relative to `infra/headwater`."""
    infra = ROOT / "infra" / "headwater"
    found = {path for package in PACKAGES for path in (infra / package).rglob("*.py")}
    return sorted(
        path.relative_to(infra).with_suffix("").as_posix()
        for path in found
        if path.name != "__init__.py" and not path.stem.endswith(TEXTS) and _has_function(path)
    )


def _has_function(path: Path) -> bool:
    return re.search(r"^ *def ", path.read_text("utf-8"), re.MULTILINE) is not None


def _names_of_tests(folder: Path) -> set[str]:
    files = [*folder.rglob("test_*.py"), *folder.rglob("*.yaml")]
    return {path.stem.removeprefix("test_") for path in files}


@pytest.mark.parametrize("package", PACKAGES)
def test_each_module_of_decisions_has_tests_with_its_name(package: str) -> None:
    names = _names_of_tests(ROOT / "tests" / PACKAGES[package])
    missing = []
    for module in _modules():
        folder, _, name = module.rpartition("/")
        owner = max((each for each in PACKAGES if f"{folder}/".startswith(f"{each}/")), key=len)
        if owner != package or module in ELSEWHERE or module.startswith(OTHER_CASES):
            continue
        parent = folder.rpartition("/")[2]
        if not {name, f"{parent}_{name}", f"{parent.removesuffix('s')}_{name}"} & names:
            missing.append(module)
    assert not missing, (
        f"add tests/{PACKAGES[package]}/**/test_<module>.py for each of them, or name its tests in ELSEWHERE"
    )


def test_exceptions_are_necessary_and_their_tests_exist() -> None:
    assert set(ELSEWHERE) <= set(_modules())
    assert not [test for test in ELSEWHERE.values() if not (ROOT / "tests" / f"{test}.py").exists()]
    for module in ELSEWHERE:
        package = max((each for each in PACKAGES if module.startswith(f"{each}/")), key=len)
        assert module.rpartition("/")[2] not in _names_of_tests(ROOT / "tests" / PACKAGES[package]), module
