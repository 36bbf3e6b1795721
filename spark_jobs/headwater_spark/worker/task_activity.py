"""What the tasks do whose batch takes long, as files that the driver on the same machine reads.

Spark passes nothing from a running Python task to the driver. So a worker writes a file in the folder of the
application's local state, and deletes it when the batch ends. A worker that is killed leaves its file behind;
it is ignored, because its process does not exist, or its batch began before the client: a container that is
started again gives the same numbers to its processes. On a cluster, the driver does not see the files of
other machines: there, the log of the executor has the same.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from headwater_spark.worker.state_folders import create_private_folder

_FOLDER = "activities"
_SUFFIX = ".json"


@attrs.frozen(kw_only=True)
class TaskActivity:
    """What a task does. `seconds` is how long it has processed its batch.

    `record` describes the input record, `processor` is the node of users' code; empty: not known. `code` is
    the line that runs. While changelog topics are read, `restoring` is the topic, and `restored` is how many
    of its `to_restore` offsets are behind the task.
    """

    task: str
    since: float
    """Seconds since 1970."""
    seconds: float = 0.0
    record: str = ""
    processor: str = ""
    code: str = ""
    restoring: str = ""
    restored: int = 0
    to_restore: int = 0
    process: int = attrs.field(factory=os.getpid)

    def status(self) -> dict[str, str | float]:
        """Return the activity as in the JSON of `/status`."""
        return {
            "task": self.task,
            "since": self.since,
            "seconds": self.seconds,
            "record": self.record,
            "processor": self.processor,
            "code": self.code,
            "restoring": self.restoring,
            "restored": self.restored,
            "toRestore": self.to_restore,
        }

    @property
    def subtopology(self) -> str:
        return self.task.rpartition("_")[0]


def write_activity(state_folder: Path, activity: TaskActivity) -> None:
    """Replace the file of a task; nothing happens if it cannot be written, which others report."""
    with suppress(OSError):
        create_private_folder(state_folder / _FOLDER)
        path = _activity_file(state_folder, activity.task)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(attrs.asdict(activity)), encoding="utf-8")
        draft.replace(path)


def delete_activity(state_folder: Path, task: str) -> None:
    with suppress(OSError):
        _activity_file(state_folder, task).unlink(missing_ok=True)


def read_activities(state_folder: Path, now: float, after: float = 0.0) -> Sequence[TaskActivity]:
    """Return what the tasks of processes of this machine do at `now`, seconds since 1970, by their names.

    Their batches have begun after `after`, the start of the client.
    """
    found: list[TaskActivity] = []
    with suppress(OSError):
        for path in sorted((state_folder / _FOLDER).glob(f"*{_SUFFIX}")):
            with suppress(OSError, ValueError, TypeError):  # it was deleted, or another version wrote it
                fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
                activity = TaskActivity(**fields)
                if activity.since >= after and _process_exists(activity.process):
                    found.append(attrs.evolve(activity, seconds=round(max(0.0, now - activity.since), 1)))
    return found


def _activity_file(state_folder: Path, task: str) -> Path:
    return state_folder / _FOLDER / f"{task}{_SUFFIX}"


def _process_exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
