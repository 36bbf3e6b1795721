"""The options of an application's command line: its document, and the folders and session that they mean."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import attrs

from headwater.command_line import JobOptions
from headwater.model.problems import Problem, ProblemCode, ProblemsError, errors
from headwater.model.topology import Application, TopologyDocument
from headwater.spec import load_documents
from headwater_spark.driver.metrics import Instruments
from headwater_spark.driver.spark_session.session import SessionSettings, is_remote

DEFAULT_FOLDER = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "headwater"


@attrs.frozen(kw_only=True)
class RunOptions(JobOptions):
    """The options of an application.

    `master` None: as `spark-submit` says. `checkpoint` and `state_dir` None: in the state folder of the user.
    `java_options` are options of the driver's JVM. `records_at_once` and `bytes_at_once` None: the defaults
    of `RunSettings`.
    `watch` is a context in which the application starts and runs; it gets the metrics.
    """

    file: Path
    master: str | None = None
    jars: tuple[str, ...] = ()
    java_options: tuple[str, ...] = ()
    conf: Mapping[str, str] = attrs.field(factory=dict)
    web_ui: bool = False
    checkpoint: str | None = None
    state_dir: Path | None = None
    records_at_once: int | None = None
    bytes_at_once: int | None = None
    restarts: int = 10
    until_idle: bool = False
    watch: Callable[[Instruments], AbstractContextManager[object]] = attrs.field(
        default=lambda _: nullcontext()
    )

    @property
    def checkpoint_folder(self) -> str:
        """The absolute path or the URL of the checkpoints."""
        given = self.checkpoint or str(DEFAULT_FOLDER.expanduser() / "checkpoints")
        return given if is_remote(given) else str(Path(given).absolute())

    def state_folder(self, application: Application) -> Path:
        said = self.state_dir or application.config.get("state.dir")
        return Path(said or DEFAULT_FOLDER.expanduser() / "state").absolute()

    def session(self, application: str) -> SessionSettings:
        return SessionSettings(
            application=f"headwater {application}",
            master=self.master,
            jars=self.jars,
            local_checkpoints=not is_remote(self.checkpoint_folder),
            java_options=self.java_options,
            web_ui=self.web_ui,
            conf=self.conf,
        )


def load_document(file: Path) -> TopologyDocument:
    """Return the only document of `file`.

    Raises:
        ProblemsError: The file holds no document or several, or the document is not valid.
    """
    loaded = load_documents([file])
    if wrong := errors(loaded.problems):
        raise ProblemsError(wrong)
    if len(loaded.documents) != 1:
        raise ProblemsError([_not_one_document(file, len(loaded.documents))])
    return loaded.documents[0]


def folder_of(file: Path) -> Path:
    """Return the folder that the paths of schema files in a document are relative to."""
    return file.parent if file.is_file() else file


def _not_one_document(file: Path, found: int) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        summary="One process runs one application.",
        expected="one document",
        found=f"{found} in {file}",
        why="Each application is a client of its own, with its own state, checkpoints and restarts.",
        fix="Pass the file of one document; run the other applications as separate processes.",
    )
