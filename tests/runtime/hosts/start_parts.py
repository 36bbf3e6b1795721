"""The parts of the start of a driver, from its log."""

import re
from collections.abc import Mapping
from datetime import datetime

_LINE = re.compile(r"^(\d{4}-\d\d-\d\dT\S+Z) \[\w+ *\] (.*)$", re.MULTILINE)
_PARTS = {
    "process": "endpoint started",
    "Spark is being started": "starting Spark",
    "Spark": "checking classes and connector",
    "waiting": "waiting: another client is active",
    "takeover": "client takes over",
    "queries": "new=REBALANCING",
    "executors released": "executors of the replaced client released",
    "running": "new=RUNNING",
}


def start_parts(log: str, since: float) -> Mapping[str, float]:
    """Return part → seconds from `since`, as `time.time`, until the first line of a start logs it.

    The log may begin with earlier starts. A part that was not logged is missing. The clocks are the same.
    """
    seconds: dict[str, float] = {}
    for text, event in _LINE.findall(log):
        after = datetime.fromisoformat(text).timestamp() - since
        for part, begin in _PARTS.items():
            if after >= 0.0 and begin in event:
                seconds.setdefault(part, round(after, 1))
    return seconds
