"""Put the jar of the library for Kafka Streams into the wheel.

Maven builds it if it is not in `build/streams-library`. Without Maven, or without access to its repository,
the wheel has the sources only, and `headwater streams-library` builds the jar on first use.
"""

import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StreamsLibraryHook(BuildHookInterface[Any]):
    """Found by Hatch through `[tool.hatch.build.targets.wheel.hooks.custom]`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the jar to the files of the wheel; an editable install has none."""
        if version == "editable":
            return
        root = Path(self.root)
        library = _load(root / "infra" / "headwater" / "toolchain" / "streams_jar.py")
        jar = root / "build" / "streams-library" / library.JAR
        if not library.belongs_to(jar, root / "streams_library") and not _build(library, root, jar):
            self.app.display_warning(
                "The wheel gets no jar of the library for Kafka Streams: Maven (mvn) is not installed, or "
                "failed. `headwater streams-library` builds the jar on first use."
            )
            return
        build_data["force_include"][str(jar)] = f"headwater/streams_library/{library.JAR}"


def _load(path: Path) -> ModuleType:
    """Return a module of Headwater, whose packages cannot be imported while the wheel is built."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _build(library: ModuleType, root: Path, jar: Path) -> bool:
    """Build the jar; return whether Maven is installed and has succeeded."""
    maven = shutil.which("mvn")
    if maven is None:
        return False
    jar.parent.mkdir(parents=True, exist_ok=True)
    # Several builds at the same time each have a folder of their own.
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        command = library.build_command(maven, root / "streams_library", Path(folder))
        # Standard output belongs to the build front end.
        done = subprocess.run(command, check=False, stdout=2)
        if done.returncode == 0:
            Path(folder, library.JAR).replace(jar)
    return done.returncode == 0
