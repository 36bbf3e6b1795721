"""The command line accepts each `headwater` command of pages, of help and of problems."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from headwater.cli.main import main
from tests.documentation.test_kafka_commands import python_texts

_ROOT = Path(__file__).parents[2]
_NEW = _ROOT / "infra" / "headwater" / "cli" / "new" / "files"
_PAGES = sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md"), *_NEW.rglob("*.md")])
_SOURCES = sorted([*(_ROOT / "infra").rglob("*.py"), *(_ROOT / "spark_jobs").rglob("*.py")])
_FENCED = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_IN_SHELL = re.compile(r"(?:^|\$ |\| *|; *|& *|\$\()(headwater .*)")
_ENDS = frozenset({"|", "||", "&&", "&", ">", "2>", "<"})
_LEFT_OUT = frozenset({"...", "…"})


def _fenced(text: str) -> Iterator[str]:
    for block in _FENCED.finditer(text):
        for line in re.sub(r"\\\n\s*", " ", block[1]).splitlines():
            yield from (match[1] for match in _IN_SHELL.finditer(line.strip()))


def _printed(source: Path) -> Iterator[str]:
    """Yield the commands in the texts of a module, with a word for each expression."""
    text = source.read_text(encoding="utf-8")
    if "`headwater " in text:
        for each in python_texts(text):
            yield from re.findall(r"`(headwater [a-z][^`]*)`", each.replace("{}", "WORD"))


def _inline(text: str) -> Iterator[str]:
    found = re.findall(r"`(headwater [a-z][^`{]*)`", _FENCED.sub("", text))
    return (" ".join(each.split()) for each in found)


def _examples(text: str) -> Iterator[str]:
    """Yield the examples of help: a docstring escapes the backslash at the end of a line."""
    joined = re.sub(r"\\\\\n\s*", " ", text)
    return (match[1] for match in re.finditer(r"^ +(headwater [a-z].*)$", joined, re.MULTILINE))


def _words(command: str) -> list[str]:
    """Return the words after `headwater`, without comments, redirections and further commands."""
    text = re.sub(r"\)\"?$", "", re.sub(r"\s+#.*$", "", command))
    words: list[str] = []
    for word in shlex.split(text)[1:]:
        if word in _ENDS or word.startswith((">", "2>")):
            break
        words.append(word.removesuffix(";"))
        if word.endswith(";"):
            break
    return [word for word in words if word not in _LEFT_OUT]


def _check(command: str, *, is_whole: bool) -> None:
    """Raise `click.UsageError` if there is no such command, option, choice or argument."""
    found: click.Command = main
    context = click.Context(main)
    words = _words(command)
    while isinstance(found, click.Group):
        if not words or words[0].startswith("-") or words[0].isupper():
            return  # a sentence about the command, or a placeholder
        child = found.get_command(context, words[0])
        if child is None:
            raise click.UsageError(f"there is no command {words[0]}")
        found, words = child, words[1:]
        context = click.Context(child, context, **child.context_settings)
    options, others, order = found.make_parser(context).parse_args(words)
    if others and not context.allow_extra_args:
        raise click.UsageError(f"unexpected {others}")
    for parameter in order:
        value = options.get(parameter.name or "")
        if isinstance(parameter.type, click.Choice) and isinstance(value, str) and not value.isupper():
            parameter.type.convert(value, parameter, context)
    missing = [
        each.name for each in found.params if each.required and not _is_given(options.get(each.name or ""))
    ]
    if is_whole and missing:
        raise click.UsageError(f"missing {missing}")


def _is_given(value: object) -> bool:
    return value is True or (isinstance(value, str | tuple | list) and bool(value))


def _faults(commands: set[str], *, is_whole: bool) -> Iterator[str]:
    for command in sorted(commands):
        try:
            _check(command, is_whole=is_whole)
        except click.BadOptionUsage as error:
            if is_whole:
                yield f"{command}: {error.format_message()}"
        except click.UsageError as error:
            yield f"{command}: {error.format_message()}"


def test_commands_in_blocks_of_pages_are_complete() -> None:
    commands = {each for page in _PAGES for each in _fenced(page.read_text(encoding="utf-8"))}
    assert len(commands) > 80
    assert list(_faults(commands, is_whole=True)) == []


def test_examples_of_help_are_complete() -> None:
    commands = {each for source in _SOURCES for each in _examples(source.read_text(encoding="utf-8"))}
    assert len(commands) > 60
    assert list(_faults(commands, is_whole=True)) == []


def test_commands_in_sentences_have_options_that_exist() -> None:
    commands = {each for page in _PAGES for each in _inline(page.read_text(encoding="utf-8"))}
    commands |= {each for source in _SOURCES for each in _printed(source)}
    commands = {each for each in commands if "[" not in each}
    assert len(commands) > 100
    assert list(_faults(commands, is_whole=False)) == []


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("headwater plann x.yaml", "there is no command plann"),
        ("headwater plan x.yaml --stacks production", "No such option '--stacks'"),
        ("headwater compile x.yaml --format pdf", "'pdf' is not one of"),
        ("headwater describe a.yaml b.yaml", "unexpected"),
        ("headwater describe", "missing"),
    ],
)
def test_other_commands_are_faults(command: str, reason: str) -> None:
    (fault,) = _faults({command}, is_whole=True)
    assert reason in fault
