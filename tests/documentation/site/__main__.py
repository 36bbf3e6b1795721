"""Build the documentation site: `python -m tests.documentation.site`, in the folder of the repository."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.documentation.site.pages import write_pages

_PAGES = Path("build/docs")
_SITE = Path("build/site")


def main() -> int:
    """Return the exit code of the site generator: not 0 if a link leads nowhere."""
    for folder in (_PAGES, _SITE):
        shutil.rmtree(folder, ignore_errors=True)
    write_pages(Path(), _PAGES)
    done = subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], check=False)
    if done.returncode == 0:
        print(f"Open {_SITE}/index.html, or with search: python -m http.server -d {_SITE}")  # noqa: T201 - a command
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
