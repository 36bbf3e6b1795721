"""What `.importlinter` cannot say of packages and layers: `test_contracts.py` checks its contracts."""

import ast
import os
import re
from collections.abc import Iterator
from configparser import ConfigParser
from functools import cache
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
    listed = tuple(
        str(ROOT.joinpath(SOURCE_ROOTS[module.partition(".")[0]], *module.split(".")))
        for name in PURE_CONTRACTS
        for module in contracts[f"importlinter:contract:{name}"]["source_modules"].split()
    )
    # As texts: comparing paths took a tenth of the time in which each worker collects all tests.
    files, folders = {f"{each}.py" for each in listed}, tuple(f"{each}{os.sep}" for each in listed)
    for path in MODULES:
        if (text := str(path)) in files or text.startswith(folders):
            yield path


PURE_MODULES = tuple(_pure_modules())
_CLAIM = re.compile(r"^PURE\.|\bPure:|\bNo effects\.")
"""How the docstring of a module says that the module, or its package, is pure."""
_CLAIM_ANYWHERE = re.compile(r"PURE\.|Pure:|No effects\.")
"""Only modules with these words are parsed."""


def test_pure_modules_call_no_impure_builtin() -> None:
    """import-linter checks imports; built-ins such as `open()` need none."""
    assert len(PURE_MODULES) > 100
    words = [f"{name}(" for name in IMPURE_BUILTINS]
    called = {
        path.relative_to(ROOT).as_posix(): {
            call.func.id for call in _calls(path, *words) if isinstance(call.func, ast.Name)
        }
        for path in PURE_MODULES
    }
    impure = {name: names & IMPURE_BUILTINS for name, names in called.items()}
    assert {name: found for name, found in impure.items() if found} == EXCEPTIONS


def test_modules_that_claim_to_be_pure_are_under_a_contract() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES}
    with_words = [path for path, text in texts.items() if _CLAIM_ANYWHERE.search(text)]
    claiming = [path for path in with_words if _CLAIM.search(ast.get_docstring(ast.parse(texts[path])) or "")]
    assert len(claiming) > 5
    assert [path for path in claiming if path not in PURE_MODULES] == []


PROBLEM_TEXTS = {"code", "summary", "expected", "found", "why", "fix", "severity"}


def test_no_problem_is_rewritten_after_it_was_created() -> None:
    """A rule gets the `Caller` and builds the final text. Only `Problem.located` fills in what is empty."""
    evolved = [
        (path, call)
        for path in MODULES
        for call in _calls(path, "attrs.evolve", "copy.replace")
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in ("evolve", "replace")
        and ast.unparse(call.func) in ("attrs.evolve", "copy.replace")
    ]
    assert len(evolved) > 50
    assert not [
        f"{path}:{call.lineno}"
        for path, call in evolved
        if {word.arg for word in call.keywords} & PROBLEM_TEXTS
    ]
    assert not [
        f"{path}:{call.lineno}"
        for path, call in evolved
        if path != ROOT / "infra/headwater/model/problems.py"
        and call.args
        and re.search(r"\b(problem|each_problem|fault)$", ast.unparse(call.args[0]))
    ]


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
    assert not [
        f"{path}:{call.lineno}"
        for path in MODULES
        for call in _calls(path, *ABORTING_CALLS)
        if isinstance(call.func, ast.Attribute) and call.func.attr in ABORTING_CALLS
    ]


def _calls(path: Path, *words: str) -> Iterator[ast.Call]:
    """Yield the calls of a module whose text contains one of `words`: only such modules are parsed."""
    if any(word in _text(path) for word in words):
        yield from (node for node in ast.walk(_parsed(path)) if isinstance(node, ast.Call))


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(_text(path))
