"""The topics that must not be lost, and who has released which of them in a reviewed step.

It knows nothing of evidence: it follows the documents that were applied, and what other clients have done.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.model.cluster import LiveTopic
from headwater.model.records import OWNERSHIP_TOPIC
from tests.accidents.documents import Declared, internal_topics
from tests.accidents.simulated import Run
from tests.contract.fake_cluster import BROKER_DEFAULTS

_UNLIMITED = -1


class AccidentError(AssertionError):
    """A topic, its records or the settings that keep them were lost, and no step had released it."""


@attrs.frozen(kw_only=True)
class Observation:
    """A run of `stack` with `documents`, and the topics by name before and after it.

    `others` are the ids of the topics that other clients have deleted or reconfigured meanwhile. `empty` are
    the names of topics without records. `is_careful`: a policy refuses settings that remove records.
    `has_unreadable`: an ownership record was not readable.
    """

    stack: str
    documents: Sequence[Declared]
    run: Run
    before: Mapping[str, LiveTopic]
    after: Mapping[str, LiveTopic]
    others: frozenset[str]
    empty: frozenset[str]
    is_careful: bool
    has_unreadable: bool = False


@attrs.define
class Ledger:
    """What the runs of all stacks have done so far, by topic id."""

    own: set[str] = attrs.field(factory=set)
    """Topics that Headwater created, or has adopted in an earlier run."""
    released: dict[str, tuple[str, str]] = attrs.field(factory=dict)
    """Topic id → stack and application that have taken the first step of its deletion."""
    manager: dict[str, str] = attrs.field(factory=dict)
    """Topic id → the stack that declared it last."""
    applied: defaultdict[str, dict[str, Declared]] = attrs.field(factory=lambda: defaultdict(dict))
    """Stack → application → the document of its last run that finished."""
    stores: defaultdict[str, set[str]] = attrs.field(factory=lambda: defaultdict(set))
    """Application → all stores that a run has set up."""

    def check(self, seen: Observation) -> None:
        """Compare the cluster before and after a run, and note what the run has released.

        Raises:
            AccidentError: A topic is gone or was changed in a way that loses data.
        """
        is_changed = seen.before != seen.after and not seen.others
        if is_changed and not seen.run.has_begun and not seen.run.is_killed:
            raise AccidentError(f"a run changed topics although its plan has errors: {seen.run.error}")
        if seen.run.has_begun:
            self._note(seen)
        for name, topic in seen.before.items():
            found = seen.after.get(name)
            if topic.topic_id in seen.others:
                continue
            if found is None or found.topic_id != topic.topic_id:
                accidents, what = self._deleted(seen, topic), "was deleted"
            else:
                accidents, what = self._changed(seen, topic, found), f"became {found}"
            for accident in accidents:
                raise AccidentError(f"{name} ({topic.topic_id}) {what}: {accident}")
        self._conclude(seen)

    def _deleted(self, seen: Observation, topic: LiveTopic) -> Iterator[str]:
        release = self.released.get(topic.topic_id)
        if release is None or release[0] != seen.stack:
            yield f"no step of stack {seen.stack} has released it ({release})"
            return
        application = release[1]
        declared = {document.id: document for document in seen.documents}.get(application)
        if declared is not None and topic.name not in declared.delete:
            yield f"the document of {application} does not delete it"
        if declared is not None and topic.name in declared.topics:
            yield f"the document of {application} declares it"
        manager = self.manager.get(topic.topic_id, seen.stack)
        if manager != seen.stack:
            yield f"stack {manager} manages it"
        if seen.has_unreadable:
            yield "an ownership record that is not readable may be of its owner"
        yield from self._readers(seen, topic, application)

    def _readers(self, seen: Observation, topic: LiveTopic, application: str) -> Iterator[str]:
        for group in seen.run.users.get(topic.name, frozenset()) - {application}:
            yield f"group {group} reads it"
        applied = {stack: tuple(documents.values()) for stack, documents in self.applied.items()}
        for stack, documents in {**applied, seen.stack: tuple(seen.documents)}.items():
            for document in documents:
                if document.is_active and document.id != application and topic.name in document.reads:
                    yield f"application {document.id} of stack {stack} reads it"

    def _changed(self, seen: Observation, topic: LiveTopic, found: LiveTopic) -> Iterator[str]:
        if found.partitions < topic.partitions:
            yield "fewer partitions"
        name = topic.name
        if name == OWNERSHIP_TOPIC:  # each run repairs its settings
            return
        owners = [document for document in seen.documents if document.is_active and name in document.topics]
        if found.config != topic.config and not owners:
            yield "no document declares it, and its settings changed"
        if not _keeps_less(topic, found):
            return
        if seen.is_careful and name not in seen.run.warned("MisconfiguredInternalTopic"):
            yield "a policy refuses settings that remove records"
        is_foreign = topic.topic_id not in self.own
        if any(name in document.adopts for document in owners) or (is_foreign and name in seen.empty):
            return
        if any(document.is_manual for document in owners):
            yield "a run with manual setup removed records"
        if is_foreign:
            yield "adopted with settings that remove records"
        if name not in seen.run.warned("SettingRemovesData", "MisconfiguredInternalTopic"):
            yield "settings that remove records, without a warning"

    def _note(self, seen: Observation) -> None:
        """Note what the documents of a run that has begun release, and what they take back."""
        ids = {name: topic.topic_id for name, topic in {**seen.before, **seen.after}.items()}
        for document in seen.documents:
            if document.is_active:
                self.stores[document.id] |= document.stores
            ever = self._ever(document.id)
            if document.lifecycle == "retired":
                self._release(seen, document, ever)
                continue
            entries = document.retire | document.delete
            declared = document.topics if document.is_active else frozenset()
            for name in (ever | declared) & ids.keys():
                is_own = self.released.get(ids[name]) == (seen.stack, document.id)
                if name in declared or (is_own and (not document.is_active or name not in entries)):
                    self.released.pop(ids[name], None)
            self._release(seen, document, document.retire)
            for name in self._ever(document.former) & ids.keys():
                self.released.pop(ids[name], None)
            if document.is_active:
                self.manager.update({ids[name]: seen.stack for name in document.topics & ids.keys()})

    def _ever(self, id_: str) -> frozenset[str]:
        """Return all internal topics that runs of the application have set up."""
        return internal_topics(id_, frozenset(self.stores[id_])) if id_ else frozenset()

    def _release(self, seen: Observation, document: Declared, names: frozenset[str]) -> None:
        for name in names & seen.before.keys():
            self.released[seen.before[name].topic_id] = (seen.stack, document.id)

    def _conclude(self, seen: Observation) -> None:
        known = {topic.topic_id for topic in seen.before.values()}
        self.own |= {topic.topic_id for topic in seen.after.values()} - known
        if seen.run.has_begun:
            names = {name for document in seen.documents if document.is_active for name in document.topics}
            self.own |= {seen.after[name].topic_id for name in names & seen.after.keys()}
        if seen.run.is_finished:
            self.applied[seen.stack] = {document.id: document for document in seen.documents}


def _keeps_less(before: LiveTopic, after: LiveTopic) -> bool:
    return any(new < old for old, new in zip(_kept(before), _kept(after), strict=True))


def _kept(topic: LiveTopic) -> tuple[float, ...]:
    """Return how much a topic keeps; each number that falls can remove records."""

    def number(key: str, default: str) -> float:
        value = int(topic.config.get(key, BROKER_DEFAULTS.get(key, default)))
        return math.inf if value <= _UNLIMITED else value

    policies = topic.config.get("cleanup.policy", BROKER_DEFAULTS["cleanup.policy"])
    is_deleted, is_compacted = "delete" in policies, "compact" in policies
    return (
        0 if is_compacted else 1,
        number("retention.ms", "604800000") if is_deleted else math.inf,
        number("retention.bytes", "-1") if is_deleted else math.inf,
        number("min.compaction.lag.ms", "0") if is_compacted else math.inf,
    )
