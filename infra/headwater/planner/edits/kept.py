"""The verdict for a topic that is kept, with what the user should know."""

from collections.abc import Mapping

from headwater.model.problems import Severity
from headwater.planner.edits.layouts import Layout
from headwater.planner.edits.matching import Sides
from headwater.planner.edits.values import DRAIN, NOTHING, Subject, TopicEdit, Verdict
from headwater.planner.phrases import duration_phrase, explain_milliseconds, listed, setting_text

_KEEPS = "Kafka Streams finds it by its name."
_NOT_SHOWN = "The input does not show kind and serdes of its records: they must be the same before and after."
_OTHER_NAME = "Give the store another name if old and new results must not mix."
_OTHER_WINDOWS = "Give the store another name if old and new windows must not mix."
_WITHOUT_LOCAL_STATE = (
    "Stop all instances, and delete their local state, before you start the new version: they restore it "
    "from the changelog."
)
_VERSIONED = "If the store is versioned now, run `pulumi up` first: it sets `min.compaction.lag.ms`."
_PARTITIONER = "Check the partitioner of what writes the source topics."
_SET = "Run `pulumi up`, which changes the settings of the existing topic."


def edit_of_kept_topic(
    sides: Sides, subject: Subject, before: Layout | None, after: Layout | None
) -> TopicEdit:
    """Return the verdict for a topic that is kept, with what the user should know."""
    is_store = subject.store is not None
    settings = _settings_sentence(sides, subject)
    windows = _windows_sentence(before, after)
    local = _local_sentence(before, after)
    name = subject.store or sides.after.short_name(subject.topic.name)
    old, new = sides.input_topics(name, is_store=is_store)
    inputs = _inputs_sentence(old, new)
    change = sides.partitioner_changes.get((is_store, name))
    why = f"{_KEEPS}{windows}{local}{inputs}{f' {change.why}' if change is not None else ''}{settings}"
    if local:
        return subject.edit(
            Verdict.KEPT,
            Severity.WARNING,
            why=why,
            first=_without_local_state(before, after, has_windows=bool(windows), settings=settings),
        )
    if before is None or after is None or not (before.is_known and after.is_known):
        why = f"{why} {_NOT_SHOWN}"
    if windows:
        return subject.edit(Verdict.KEPT, Severity.WARNING, why=why, first=_OTHER_WINDOWS)
    if old and new and not old & new:
        return subject.edit(Verdict.KEPT, Severity.WARNING, why=why, first=_OTHER_NAME if is_store else DRAIN)
    if settings:
        first = _SET
    elif is_store and old - new:
        first = _OTHER_NAME
    else:
        first = _PARTITIONER if change is not None else NOTHING
    return subject.edit(Verdict.KEPT, why=why, first=first)


def _without_local_state(
    before: Layout | None, after: Layout | None, *, has_windows: bool, settings: str
) -> str:
    """Return what to do if local state cannot be read."""
    is_other_kind = before is not None and after is not None and before.kind != after.kind
    more = f" {_VERSIONED}" if is_other_kind else f" {_SET}" if settings else ""
    return f"{_WITHOUT_LOCAL_STATE}{more}{f' {_OTHER_WINDOWS}' if has_windows else ''}"


def _inputs_sentence(old: frozenset[str], new: frozenset[str]) -> str:
    """Return a sentence about topics before the operator that are others; empty if none is."""
    if not old or not new or old == new:
        return ""
    if not old & new:
        return f" Its input was {listed(old)} and is {listed(new)}: old and new results mix."
    removed = f" It has results of {listed(old - new)}, which is not read any more." if old - new else ""
    added = f" {listed(new - old)} is read in addition from now on." if new - old else ""
    return f"{removed}{added}"


def _windows_sentence(before: Layout | None, after: Layout | None) -> str:
    if before is None or after is None:
        return ""
    if before.windows and after.windows and before.windows != after.windows:
        return (
            f" Its windows were {before.windows} and are {after.windows}: entries of old windows stay as "
            "they are until they expire, so old and new results mix."
        )
    if before.is_known and after.is_known and before.window_ms != after.window_ms:
        return (
            f" Its windows had {_length_text(before)} and have {_length_text(after)}: entries of old windows "
            "keep their start, and count as windows of the new length until they expire."
        )
    return ""


def _length_text(layout: Layout) -> str:
    return "no fixed length" if layout.window_ms is None else duration_phrase(layout.window_ms)


def _local_sentence(before: Layout | None, after: Layout | None) -> str:
    """Return a sentence about local state that cannot be read afterwards; empty if it can."""
    if before is None or after is None:
        return ""
    if before.is_known and after.is_known and before.kind != after.kind:
        return (
            f" The store is {after.kind} instead of {before.kind}: the changelog has the same format, local "
            "state does not."
        )
    if before.files is None or after.files is None:
        return ""
    old, new = before.files, after.files
    if not (before.is_known and after.is_known):
        # A document from code shows the retention only.
        old, new = old.partition(",")[0], new.partition(",")[0]
    if old == new:
        return ""
    old, new = old or "entries by key", new or "entries by key"
    return (
        f" Its files on local disks have another layout ({old}; afterwards {new}): with them, entries are "
        "missing without a message, or the application fails."
    )


def _settings_sentence(sides: Sides, subject: Subject) -> str:
    """Return a sentence about settings that Kafka Streams would create the topic with; empty if they stay."""
    old, new = sides.before.topics[subject.topic.name].config, subject.topic.config
    changed = [
        f"{key} from {_value_text(key, old)} to {_value_text(key, new)}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    if not changed:
        return ""
    text = ", ".join(changed)
    return f" Its settings change ({text}): Kafka Streams sets them only when it creates the topic."


def _value_text(key: str, config: Mapping[str, str]) -> str:
    value = setting_text(config.get(key))
    return explain_milliseconds(value) if key.endswith(".ms") else value
