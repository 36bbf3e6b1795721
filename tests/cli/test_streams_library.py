"""`headwater streams-library` copies the jar, with Java 11 bytecode and no class of others."""

import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from headwater.cli.main import main

_JAVA_11 = 55


@pytest.mark.oracle
def test_the_jar_is_copied(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["streams-library", "-o", str(tmp_path / "libs")])
    assert done.exit_code == 0, done.output
    jar = tmp_path / "libs" / "headwater-streams-0.1.0.jar"
    assert done.output.splitlines()[-1] == str(jar)
    with zipfile.ZipFile(jar) as archive:
        classes = [name for name in archive.namelist() if name.endswith(".class")]
        assert "io/headwater/streams/HeadwaterClientSupplier.class" in classes
        assert all(name.startswith("io/headwater/streams/") for name in classes)
        assert {archive.read(name)[7] for name in classes} == {_JAVA_11}
