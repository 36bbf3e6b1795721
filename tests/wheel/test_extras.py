"""The base installation has no package of the extra `spark`, and all of `headwater` can be imported."""

import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

from tests.locks import closure

_PROGRAM = """
import pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import headwater
names = [module.name for module in pkgutil.walk_packages(headwater.__path__, "headwater.", onerror=print)]
for name in names:
    if not name.endswith("__main__"):
        __import__(name)
print(len(names))
"""


@pytest.mark.slow  # it imports all modules, in a process of its own
def test_plans_reports_and_the_agent_need_no_package_of_spark() -> None:
    extra = closure({"headwater"}, "spark") - closure({"headwater"})
    assert {"pyspark", "lmdb", "fastavro", "sqlglot", "sortedcontainers"} <= extra
    absent = [
        package for package, owners in packages_distributions().items() if extra & {o.lower() for o in owners}
    ]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *absent], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300
