"""The literal parts of all fixes in the source, found without running it."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
_KEYWORDS = ("fix", "first")
_ALTERNATIVE = re.compile(r"(?<=[.;])\s+|,? or ")
_LEAST_WORDS = 3


@attrs.frozen
class Module:
    """A module of the source: its constants, its functions, and what it imports."""

    path: Path
    constants: dict[str, ast.expr]
    functions: dict[str, ast.FunctionDef]
    imports: dict[str, tuple[str, str]]
    tree: ast.Module


@cache
def _module(path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants: dict[str, ast.expr] = {}
    imports: dict[str, tuple[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            constants |= {each.id: node.value for each in node.targets if isinstance(each, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            constants[node.target.id] = node.value
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("headwater."):
            imports |= {each.asname or each.name: (node.module, each.name) for each in node.names}
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return Module(path, constants, functions, imports, tree)


def alternatives(text: str) -> list[str]:
    """Return the instructions of a fix: its sentences, and the alternatives of a sentence."""
    parts = (part.strip(" .,:;()`") for part in _ALTERNATIVE.split(text))
    return [part.removeprefix("or ").removeprefix("Or ") for part in parts]


def literals(*packages: str) -> dict[str, str]:
    """Return each literal part of an instruction → its file. Parts of one or two words are left out."""
    found: dict[str, str] = {}
    for package in packages:
        base = ROOT / package
        for path in sorted(base.rglob("*.py")) if base.is_dir() else [base]:
            for text in _fixes(_module(path)) if _has_fixes(path) else ():
                for part in alternatives(text):
                    if len(part.split()) >= _LEAST_WORDS:
                        found[part] = str(path.relative_to(ROOT))
    return found


@cache
def _has_fixes(path: Path) -> bool:
    """Return whether a module may have fixes: most have none, and are not parsed."""
    source = path.read_text(encoding="utf-8")
    return any(f"{keyword}=" in source for keyword in _KEYWORDS)


def _fixes(module: Module) -> Iterator[str]:
    for function in module.functions.values():
        for node in ast.walk(function):
            if isinstance(node, ast.keyword) and node.arg in _KEYWORDS:
                yield from _texts(node.value, module, function, frozenset())


def _texts(
    node: ast.AST, module: Module, function: ast.FunctionDef | None, seen: frozenset[str]
) -> Iterator[str]:
    """Yield the literal texts that an expression may contain, through names and functions of the source."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name) if name not in seen:
            yield from _named(name, module, function, seen | {name})
        case ast.Call(func=ast.Name(id=name)) if name not in seen:
            yield from _returned(name, module, seen | {name})
        case _:
            for each in _parts(node):
                yield from _texts(each, module, function, seen)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of an expression that may become parts of the text."""
    match node:
        case ast.FormattedValue(value=value) | ast.Subscript(value=value):
            yield value
        case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, right=second):
            yield from (first, second)
        case ast.Call(func=ast.Attribute(value=value), args=arguments):
            yield from (value, *arguments)
        case ast.Dict(values=values) | ast.JoinedStr(values=values) | ast.BoolOp(values=values):
            yield from values


def _named(
    name: str, module: Module, function: ast.FunctionDef | None, seen: frozenset[str]
) -> Iterator[str]:
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Assign | ast.AugAssign) and name in _targets(node):
            yield from _texts(node.value, module, function, seen)
    if name in module.constants:
        yield from _texts(module.constants[name], module, None, seen)
    elif name in module.imports:
        imported, own = module.imports[name]
        other = _imported(imported)
        if other is not None and own in other.constants:
            yield from _texts(other.constants[own], other, None, seen)


def _targets(node: ast.Assign | ast.AugAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each.id for each in targets if isinstance(each, ast.Name)]


def _returned(name: str, module: Module, seen: frozenset[str]) -> Iterator[str]:
    if name in module.imports:
        imported, own = module.imports[name]
        other = _imported(imported)
        if other is not None and own in other.functions:
            yield from _returned(own, other, seen)
        return
    function = module.functions.get(name)
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _texts(node.value, module, function, seen)


def _imported(module: str) -> Module | None:
    spec = importlib.util.find_spec(module)
    return _module(Path(spec.origin)) if spec is not None and spec.origin else None
