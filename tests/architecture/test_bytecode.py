"""The workers of a run compile each module once: what one of them has compiled, the others import."""

from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.bytecode import collected_files, is_test, rewrite_assertions, share

_TEST = "def test_one() -> None:\n    assert 1 == 1\n"


def test_each_file_is_in_one_part_and_the_parts_are_about_equal(tmp_path: Path) -> None:
    files = [tmp_path / f"test_{number}.py" for number in range(20)]
    for number, file in enumerate(files):
        file.write_text("#" * 100 * (number + 1))
    parts = [share(iter([*files, *files]), part, 3) for part in range(3)]
    assert sorted(file for part in parts for file in part) == sorted(files)
    sizes = [sum(file.stat().st_size for file in part) for part in parts]
    assert max(sizes) - min(sizes) <= 20 * 100
    assert share(iter(files), 4, 3) == parts[1], "a worker that replaces another one has a higher number"


def test_a_link_of_an_editor_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".#one.py").symlink_to("user@host.4711")
    (tmp_path / "one.py").write_text(_TEST)
    assert share(tmp_path.rglob("*.py"), 0, 1) == [tmp_path / "one.py"]


def test_the_test_modules_of_a_run_are_found(tmp_path: Path) -> None:
    for name in ("a/test_one.py", "a/conftest.py", "a/helper.py", "b/test_two.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(_TEST)
    arguments = [str(tmp_path / "a"), f"{tmp_path / 'b' / 'test_two.py'}::test_one"]
    found = sorted(str(file.relative_to(tmp_path)) for file in collected_files(arguments))
    assert found == ["a/conftest.py", "a/test_one.py", "b/test_two.py"]
    assert not is_test(tmp_path / "a" / "helper.py")


def test_pytest_imports_what_was_rewritten(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Otherwise a new version of pytest would rewrite the modules in each worker again."""
    if pytestconfig.getoption("assertmode") != "rewrite":
        pytest.skip("this run rewrites no assertions")
    file = tmp_path / "test_one.py"
    file.write_text(_TEST)
    rewrite_assertions(file, pytestconfig)
    [compiled] = (tmp_path / "__pycache__").iterdir()
    assert rewrite._read_pyc(file, compiled) is not None
    before = compiled.stat().st_mtime_ns
    rewrite_assertions(file, pytestconfig)
    assert compiled.stat().st_mtime_ns == before
    file.write_text(_TEST.replace("1 == 1", "2 == 2"))
    assert rewrite._read_pyc(file, compiled) is None, "a changed module is rewritten when it is imported"
