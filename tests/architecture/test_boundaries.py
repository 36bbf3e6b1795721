"""The layers of ARCHITECTURE.md: who may import whom, and which packages stay pure."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PURE_CONTRACTS = ("pure", "engine", "decisions", "journal")
IMPURE_BUILTINS = {"open", "input", "print", "exec", "eval", "__import__", "breakpoint"}
EXCEPTIONS = {
    "spark_jobs/headwater_spark/engine/expressions/source.py": {"exec"},  # runs generated functions
}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}

FOLDERS = (
    *("deploy", "docs", "infra", "requirements", "spark_jobs", "streams_library"),
    *("tests", "topology_schemas"),
)

SOURCE_ROOTS = {"headwater": "infra", "headwater_spark": "spark_jobs"}

MODULES = sorted(path for folder in SOURCE_ROOTS.values() for path in (ROOT / folder).rglob("*.py"))


def _pure_modules() -> Iterator[Path]:
    """Yield the modules that must be pure, as the import contracts list them."""
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    listed = [
        ROOT.joinpath(SOURCE_ROOTS[module.partition(".")[0]], *module.split("."))
        for name in PURE_CONTRACTS
        for module in contracts[f"importlinter:contract:{name}"]["source_modules"].split()
    ]
    for path in MODULES:
        if any(path.with_suffix("") == each or each in path.parents for each in listed):
            yield path


PURE_MODULES = tuple(_pure_modules())
_CLAIM = re.compile(r"^PURE\.|\bPure:|\bNo effects\.")
"""How the docstring of a module says that the module, or its package, is pure."""


def test_imports_follow_the_layers() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def _impure_builtins(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {name.id for name in called if isinstance(name, ast.Name)} & IMPURE_BUILTINS


def test_pure_modules_call_no_impure_builtin() -> None:
    """import-linter checks imports; built-ins such as `open()` need none."""
    assert len(PURE_MODULES) > 200
    found = {path.relative_to(ROOT).as_posix(): _impure_builtins(path) for path in PURE_MODULES}
    assert {name: called for name, called in found.items() if called} == EXCEPTIONS


def test_modules_that_claim_to_be_pure_are_under_a_contract() -> None:
    claiming = [
        path for path in MODULES if _CLAIM.search(ast.get_docstring(ast.parse(path.read_text())) or "")
    ]
    assert len(claiming) > 5
    assert [path for path in claiming if path not in PURE_MODULES] == []


PROBLEM_TEXTS = {"code", "summary", "expected", "found", "why", "fix", "severity"}


def _rewritten_problems(path: Path) -> Iterator[str]:
    """Yield each place that changes a text of a problem, or a problem."""
    tree = ast.parse(path.read_text())
    evolved = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("attrs.evolve", "copy.replace")
    ]
    for node in evolved:
        changes_text = bool({word.arg for word in node.keywords} & PROBLEM_TEXTS)
        subject = ast.unparse(node.args[0]) if node.args else ""
        is_problem = re.search(r"\b(problem|each_problem|fault)$", subject) is not None
        if changes_text or (is_problem and path != ROOT / "infra/headwater/model/problems.py"):
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_no_problem_is_rewritten_after_it_was_created() -> None:
    """A rule gets the `Caller` and builds the final text. Only `Problem.located` fills in what is empty."""
    assert [place for path in MODULES for place in _rewritten_problems(path)] == []


def test_no_module_has_a_vague_name() -> None:
    assert not [path for path in MODULES if path.stem in VAGUE_NAMES]


def test_the_pulumi_program_stays_small() -> None:
    assert len((ROOT / "__main__.py").read_text().splitlines()) < 40


def test_the_guides_for_developers_name_existing_files() -> None:
    text = "".join(
        (ROOT / file).read_text(encoding="utf-8") for file in ("ARCHITECTURE.md", "CONTRIBUTING.md")
    )
    existing = [path.as_posix() for part in FOLDERS for path in (ROOT / part).rglob("*")]
    named = re.findall(r"`([\w./-]+(?:\.(?:py|md|json)|/))`", text)
    assert len(named) > 60
    missing = [name for name in named if not any(path.endswith(f"/{name.rstrip('/')}") for path in existing)]
    assert not [name for name in missing if not (ROOT / name).exists()]


def test_the_architecture_guide_names_every_folder() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = [
        path.parent.relative_to(ROOT / folder).as_posix()
        for folder in SOURCE_ROOTS.values()
        for path in (ROOT / folder).glob("*/*/__init__.py")
    ]
    parts = (*FOLDERS, *packages)
    assert not [part for part in parts if f"`{part}" not in text]


ABORTING_CALLS = {
    # librdkafka (2.16) aborts on an answer of a coordinator after the timeout (its pull request 5397).
    "describe_consumer_groups",
    "list_consumer_group_offsets",
    "alter_consumer_group_offsets",
    "delete_consumer_groups",
    # It aborts on an answer without brokers.
    "describe_cluster",
}


def test_no_request_may_abort_the_process() -> None:
    """`headwater.kafka.group_client` sends these requests."""
    called = {
        path.relative_to(ROOT).as_posix(): node.func.attr
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ABORTING_CALLS
    }
    assert called == {}
