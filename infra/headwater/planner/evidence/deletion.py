"""Decide whether the evidence and the ownership records allow the deletion of a topic."""

from collections.abc import Iterator

import attrs

from headwater.model.cluster import LiveTopic, UnreadCause
from headwater.planner.evidence.names import has_internal_name
from headwater.planner.evidence.topics import TopicEvidence, Verdict, unread_text
from headwater.planner.ownership import Ownership
from headwater.planner.phrases import listed

_UNREADABLE_POLICY = "permission DescribeConfigs on topic headwater-ownership"


@attrs.frozen(kw_only=True)
class Claim:
    """What the ownership records say about a deletion.

    `ownership` None = the stack has none (`headwater:ownership: none`). `policy` is the `cleanup.policy` of
    their topic. `is_prepared`: an earlier run has recorded that the topic will be deleted, so this run may
    delete it. `is_recorded`: the setup record of the stack contains the topic.
    """

    ownership: Ownership | None
    policy: str
    is_prepared: bool
    is_recorded: bool = True


@attrs.frozen
class Obstacle:
    """A reason not to delete a topic. `text` is a phrase.

    `unread` says why evidence was not read that would show whether the topic may be deleted. Empty = the
    obstacle is a fact about the topic and its users.
    """

    text: str
    unread: frozenset[UnreadCause] = frozenset()


def deletion_obstacles(evidence: TopicEvidence, live: LiveTopic, claim: Claim) -> Iterator[Obstacle]:
    """Yield each reason not to delete a topic; without any it may be deleted.

    That its topic id is the recorded one is checked separately, because the fix is another one.
    """
    if not is_internal(evidence):
        yield Obstacle("nothing shows that Kafka Streams or Headwater created it")
    for record in evidence.recorded_by:
        yield Obstacle(f"stack {record.stack.name} records it for {record.application_id}")
    if evidence.readers:
        yield Obstacle(f"it is read by {listed(evidence.readers)}")
    if evidence.is_subscribed_by_own_group:
        yield Obstacle(f"the running application {evidence.application} reads it")
    others = evidence.rivals if evidence.is_recorded else evidence.contenders
    if others:
        yield Obstacle(f"it may belong to {listed(others.values())}")
    if evidence.unread:
        yield Obstacle(unread_text(evidence.unread), frozenset(each.cause for each in evidence.unread))
    if evidence.verdict is Verdict.SUSPECTED:
        yield Obstacle(f"only its name connects it with {evidence.application}")
    yield from _claim_obstacles(evidence, live, claim)


def is_internal(evidence: TopicEvidence) -> bool:
    """Return whether name and settings are those that Kafka Streams and Headwater give to internal topics."""
    return has_internal_name(evidence.topic) and evidence.is_created_by_streams


def _claim_obstacles(evidence: TopicEvidence, live: LiveTopic, claim: Claim) -> Iterator[Obstacle]:
    """The state of a stack may be an old copy, or changed by hand: the records on the cluster must agree."""
    if claim.ownership is None:
        return
    own = claim.ownership.own.get(evidence.application)
    if not claim.is_prepared:
        if own is not None and claim.is_recorded and live.name not in own.topics:
            yield Obstacle("the stack's ownership record on the cluster does not contain it")
        return
    if own is None:
        yield Obstacle("no ownership record on the cluster says that it was retired")
    elif not (own.is_retired or live.name in own.retired_topics):
        yield Obstacle("the ownership record on the cluster says that it was not retired")
    elif own.topics.get(live.name) != live.topic_id:
        yield Obstacle("the ownership record on the cluster does not contain its topic id")
    if own is not None and claim.policy != "compact":
        found = f"cleanup.policy {claim.policy}" if claim.policy else f"not readable ({_UNREADABLE_POLICY})"
        yield Obstacle(
            f"the topic of the ownership records may have lost some: {found} instead of compact",
            unread=frozenset() if claim.policy else frozenset({UnreadCause.NO_PERMISSION}),
        )
