"""The values that describe an edit: a verdict for each topic, and what the application has to do."""

from collections.abc import Iterator
from enum import StrEnum

import attrs

from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.problems import Location, Problem, Severity
from headwater.model.versions import KafkaStreamsVersion

NOTHING = "Nothing."
"""The instruction for a topic that needs no action."""
DRAIN = (
    "Stop what writes to the source topics, and wait until the application has processed all records, before "
    "you stop it."
)
"""The instruction for records in flight that nothing processes after the edit."""

OTHER_COUNT = "Kafka Streams does not start while the topic has another count."
"""What an existing topic with another partition count means."""


class Verdict(StrEnum):
    """What happens to the data of a store or repartition topic, the worst first."""

    RESET = "reset"
    """The store starts empty, or with records that it cannot read or that belong to another operator."""
    RENAMED = "renamed"
    """The same store or topic gets another name: it starts empty, and the old topic is no longer used."""
    ORPHANED = "orphaned"
    """No operator uses the topic afterwards."""
    UNKNOWN = "unknown"
    """The input does not show it; `TopicEdit.why` says what is missing."""
    MOVED = "moved"
    """The partition count or the partitioner changes: keys leave their state."""
    REBUILT = "rebuilt"
    """The store is restored from a source topic instead of its changelog."""
    ADDED = "added"
    """A new store or topic; there was none before."""
    KEPT = "kept"


@attrs.frozen
class NameLine:
    """A name in the document or in the code that keeps an internal topic.

    `document` is the line of the call at `location`, `code` the argument of the call in Java.
    """

    topic: str
    document: str
    code: str
    location: Location | None = None


@attrs.frozen(kw_only=True)
class TopicEdit:
    """What an edit does to one internal topic, or to a store that is restored from a source topic.

    `topic` is its name afterwards; before, if it is orphaned. `former` is the old topic of a store that is
    renamed or reset. `store` is None for repartition topics. `what` is one sentence, `why` names the
    consequences, `first` says what to do before the edit.
    """

    verdict: Verdict
    severity: Severity
    topic: str
    kind: TopicKind
    store: str | None = None
    former: str | None = None
    what: str
    why: str
    first: str
    location: Location | None = None

    @property
    def is_unchanged(self) -> bool:
        """Return whether the topic is kept without a remark."""
        return self.verdict is Verdict.KEPT and self.first == NOTHING

    @property
    def loses_data(self) -> bool:
        """Return whether state or records in flight are lost, unless the instructions are followed."""
        return self.severity is Severity.ERROR


@attrs.frozen(kw_only=True)
class OperatorEdit:
    """An operator or store that does something else afterwards, by its name afterwards.

    `aspect` is what changes, with its text before and afterwards; None = not set. The aspect `operator`
    without text before is an added operator, without text afterwards a removed one, by its name before; the
    same holds for `store`. `why` names the consequence, `stores` are the stores after the operator that keep
    their state.
    """

    operator: str
    aspect: str
    before: str | None
    after: str | None
    why: str
    stores: tuple[str, ...] = ()
    location: Location | None = None

    @property
    def is_on_one_side(self) -> bool:
        """Return whether the operator or store was added or removed."""
        texts = (self.before, self.after)
        return None in texts and self.operator in texts


@attrs.frozen(kw_only=True)
class SettingEdit:
    """A setting of the application that was edited; None = not set, the default.

    `why` says what the setting decides. A value that may be secret is `set` before and afterwards.
    """

    key: str
    before: str | None
    after: str | None
    why: str
    location: Location | None = None


@attrs.frozen
class Subject:
    """A topic afterwards, and the store whose changelog it is (None = a repartition topic).

    `also` is a sentence that belongs to the reason of each verdict.
    """

    topic: InternalTopic
    store: str | None
    also: str = ""

    @property
    def name(self) -> str:
        return f"Store {self.store}" if self.store is not None else self.topic.name

    def edit(
        self,
        verdict: Verdict,
        severity: Severity = Severity.INFO,
        *,
        why: str,
        what: str = "",
        first: str = NOTHING,
        former: str | None = None,
    ) -> TopicEdit:
        """Return the verdict; without `what`, its data is kept."""
        kept = f"{self.name} keeps its {'records in flight' if self.store is None else 'state'}."
        return TopicEdit(
            verdict=verdict,
            severity=severity,
            topic=self.topic.name,
            kind=self.topic.kind,
            store=self.store,
            former=former,
            what=what or kept,
            why=f"{why} {self.also}".rstrip(),
            first=first,
            location=self.topic.at,
        )

    def moved(self, before: int, *, is_static: bool) -> TopicEdit:
        """Return the verdict for a topic with another partition count than `before`."""
        after = self.topic.partitions
        moves = (
            "The partitioner is static, so keys stay with their state."
            if is_static
            else "Keys move to other partitions, and their state does not move with them."
            if self.store is not None
            else "Keys move to other partitions than the state downstream."
        )
        return self.edit(
            Verdict.MOVED,
            Severity.WARNING if is_static else Severity.ERROR,
            what=f"{self.name} has {after} partitions instead of {before}.",
            why=f"{moves} {OTHER_COUNT}",
            first="Expand the topic before the start (`headwater plan` shows how)."
            if is_static and after > before
            else "Keep the count, or move the state (`headwater reshard`), or reset the application.",
        )


@attrs.frozen(kw_only=True)
class ApplicationEdit:
    """The edit of one application.

    `obstacle` says why instances before and after must not run together; empty = a rolling restart is safe.
    `operators` do something else, `settings` have other values. `lines` are names that keep topics: all
    together, in a document that was compiled with them. `still_lost` are topics that change although the
    lines are added. `remarks` are facts about offsets and records, `steps` are instructions in order.
    `needs_new_group`: with `group.protocol: streams`, brokers refuse the changed topology (KAFKA-20170).
    """

    id: str
    former_id: str | None = None
    before: KafkaStreamsVersion | None = None
    after: KafkaStreamsVersion
    topics: tuple[TopicEdit, ...]
    operators: tuple[OperatorEdit, ...] = ()
    settings: tuple[SettingEdit, ...] = ()
    obstacle: str = ""
    is_known: bool = True
    needs_new_group: bool = False
    lines: tuple[NameLine, ...] = ()
    still_lost: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    location: Location | None = None

    @property
    def is_rolling(self) -> bool:
        """Return whether instances can be restarted one after another."""
        return not self.obstacle

    @property
    def has_changes(self) -> bool:
        """Return whether any topic, task or group changes."""
        changed = not all(topic.is_unchanged for topic in self.topics)
        return changed or not self.is_rolling or self.needs_new_group

    @property
    def is_complete(self) -> bool:
        """Return whether all verdicts are known."""
        return self.is_known and all(topic.verdict is not Verdict.UNKNOWN for topic in self.topics)


@attrs.frozen(kw_only=True)
class Edit:
    """The edit of all applications of two sets of documents.

    `added` and `removed` are applications that only one side has. `problems` are the reasons why applications
    were not compared. `assumed` are source topics whose partition count is not known.
    """

    applications: tuple[ApplicationEdit, ...]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    assumed: tuple[str, ...] = ()
    cluster_id: str | None = None

    @property
    def topics(self) -> Iterator[TopicEdit]:
        return (topic for application in self.applications for topic in application.topics)

    @property
    def has_changes(self) -> bool:
        """Return whether anything but the text of the documents changes."""
        return bool(self.added or self.removed) or any(each.has_changes for each in self.applications)

    @property
    def is_complete(self) -> bool:
        """Return whether all applications were compared, and all verdicts are known."""
        return not self.problems and all(each.is_complete for each in self.applications)
