"""The cache of downloads and builds: an entry is complete or missing, whatever is killed meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headwater.toolchain.cache import Cache, default_root, fingerprint
from headwater.toolchain.commands import Progress, ToolchainError


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_an_entry_is_created_once_and_found_later(cache: Cache) -> None:
    calls: list[Path] = []

    def make(folder: Path, _progress: Progress) -> None:
        calls.append(folder)
        (folder / "file").write_text("content")

    first = cache.ensure("thing-1", make, Progress())
    assert cache.ensure("thing-1", make, Progress()) == first == cache.find("thing-1")
    assert (first / "file").read_text() == "content"
    assert len(calls) == 1
    assert cache.find("thing-2") is None


def test_a_failure_leaves_nothing_and_the_next_run_starts_again(cache: Cache) -> None:
    def fail(folder: Path, _progress: Progress) -> None:
        (folder / "half").touch()
        raise RuntimeError("torn")

    with pytest.raises(RuntimeError, match="torn"):
        cache.ensure("thing", fail, Progress())
    assert cache.find("thing") is None
    assert not list(cache.root.glob("*/half"))
    made = cache.ensure("thing", lambda folder, _: (folder / "whole").touch(), Progress())
    assert [file.name for file in made.iterdir()] == ["whole"]


def test_files_of_a_killed_run_are_not_an_entry(cache: Cache) -> None:
    left = cache.root / ".thing.draft"
    left.mkdir(parents=True)
    (left / "half").touch()
    made = cache.ensure("thing", lambda folder, _: (folder / "whole").touch(), Progress())
    assert [file.name for file in made.iterdir()] == ["whole"]


def test_one_of_many_processes_fills_an_entry_and_the_others_wait(cache: Cache) -> None:
    made: list[Path] = []

    def make(folder: Path, _progress: Progress) -> None:
        made.append(folder)
        for number in range(100):
            (folder / str(number)).touch()

    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: cache.ensure("thing", make, Progress()), range(8)))
    assert len(made) == 1
    assert set(folders) == {cache.root / "thing"}
    assert len(list(folders[0].iterdir())) == 100


def test_the_fingerprint_depends_on_every_part_and_its_length() -> None:
    assert fingerprint("ab", "c") == fingerprint(b"ab", b"c")
    assert (
        len({fingerprint("ab", "c"), fingerprint("a", "bc"), fingerprint("abc"), fingerprint("abc", "")}) == 4
    )


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HEADWATER_CACHE": "/own", "XDG_CACHE_HOME": "/xdg"}, "/own"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/headwater"),
        ({"HOME": "/home/someone"}, "/home/someone/.cache/headwater"),
    ],
)
def test_default_cache_folder(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    for variable in ("HEADWATER_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert default_root() == Path(expected)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "cache")
    with pytest.raises(ToolchainError, match=f"cache folder {cache.root} cannot be written: Not a directory"):
        cache.ensure("thing", lambda *_: None, Progress())
