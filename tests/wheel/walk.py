"""A new user's way through the documentation: commands of its pages, run with only the wheel installed."""

import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

_DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
_PROMPT = "$ "
_PULUMI_UP = re.compile(r"^pulumi up(?: --yes)?$", re.MULTILINE)
"""It asks whether to continue; walks answer by options."""
_SHOWN = 100


@attrs.frozen
class Block:
    """A block of code of a page: `language` is empty if the page names none."""

    language: str
    text: str

    @property
    def commands(self) -> str:
        """The commands of a shell, without prompts, comments and printed output."""
        lines = self.text.splitlines()
        if any(line.startswith(_PROMPT) for line in lines):
            lines = list(_after_prompts(lines))
        return "\n".join(re.sub(r"\s+# .*$", "", line) for line in lines)


def _after_prompts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the commands after prompts: a line that ends with a backslash or a pipe continues."""
    continues = False
    for line in lines:
        if line.startswith(_PROMPT) or continues:
            yield line.removeprefix(_PROMPT)
            continues = line.endswith(("\\", "|"))


def blocks(page: str | Path, heading: str) -> list[Block]:
    """Return the blocks of a section and its subsections; the page is a file, or its name below docs/.

    Raises:
        ValueError: The page has no such heading.
    """
    text = (_DOCS / page).read_text(encoding="utf-8")
    outside = _BLOCK.sub(lambda block: " " * len(block[0]), text)  # comments in code look like headings
    found = list(_HEADING.finditer(outside))
    for number, match in enumerate(found):
        if match[2] == heading:
            level = len(match[1])
            end = next((each.start() for each in found[number + 1 :] if len(each[1]) <= level), len(text))
            return [Block(block[1], block[2]) for block in _BLOCK.finditer(text[match.end() : end])]
    raise ValueError(f"{page} has no section {heading}")


def command(page: str, start: str) -> str:
    """Return the only command of a page below docs/ that begins with `start`, as the page prints it."""
    text = (_DOCS / page).read_text(encoding="utf-8")
    lines = [
        line for block in _BLOCK.finditer(text) for line in Block(block[1], block[2]).commands.splitlines()
    ]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    [found] = dict.fromkeys(line.strip() for line in joined if line.startswith(start))
    return found


@attrs.define
class Walk:
    """A shell of the user in `folder`. `replaced` is what the user replaces in commands of the pages."""

    folder: Path
    environment: dict[str, str]
    replaced: Mapping[str, str]
    steps: list[tuple[float, str]] = attrs.field(factory=list)
    stop_seconds: float = 60
    """How long a command of `running` may take to stop; then it is killed."""

    def run(self, commands: str, expected: int = 0) -> str:
        """Run commands, and return what they print; the exit code must be the expected one.

        Variables that the commands export hold for the next ones.
        """
        script = self.as_typed(commands)
        started = time.monotonic()
        kept = self.folder.parent / "variables"
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", f"{script}\nenv -0 > {kept}"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.steps.append((time.monotonic() - started, script))
        output = f"{done.stdout}{done.stderr}"
        assert done.returncode == expected, f"{script}\n{output}"
        if done.returncode == 0:
            pairs = (each.partition("=") for each in kept.read_text().split("\0") if each)
            self.environment = {name: value for name, _, value in pairs}
        return output

    def attempt(self, commands: str) -> str:
        """Run commands that may fail yet, and return what they print; they are no step of the way."""
        done = subprocess.run(
            ["bash", "-c", self.as_typed(commands)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    @contextmanager
    def running(self, commands: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a command that does not end, as in another shell; stop it at the end of the block."""
        log = self.folder.parent / "running.log"
        with (
            log.open("w") as output,
            subprocess.Popen(
                ["bash", "-c", f"exec {self.as_typed(commands)}"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as process,
        ):
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(self.stop_seconds)
                except subprocess.TimeoutExpired as error:
                    process.kill()
                    raise AssertionError(f"{commands} has not stopped:\n{log.read_text()}") from error
        assert process.returncode == 0, log.read_text()

    def write(self, file: str, text: str) -> None:
        """Write a file of the user."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def report(self) -> None:
        """Print the seconds of each step, and their sum."""
        for seconds, script in self.steps:
            first = script.strip().splitlines()[0]
            sys.stdout.write(f"{seconds:6.1f} s  {first[:_SHOWN]}\n")
        sys.stdout.write(f"{sum(seconds for seconds, _ in self.steps) / 60:6.1f} minutes\n")

    def as_typed(self, commands: str) -> str:
        """Return commands or code of a page with the user's own values."""
        for printed, typed in self.replaced.items():
            commands = commands.replace(printed, typed)
        return _PULUMI_UP.sub("pulumi up --yes --skip-preview", commands)
