"""Broker defaults that harm internal topics: Kafka Streams does not set these settings on its topics."""

from collections.abc import Mapping

import attrs

RETENTION_BYTES = "retention.bytes"
OLDEST_TIMESTAMP = "message.timestamp.before.max.ms"
LARGEST_MESSAGE = "max.message.bytes"
UNCLEAN_ELECTION = "unclean.leader.election.enable"
LARGEST_REQUEST = 1_048_576
"""The default of producers' `max.request.size`."""
_NO_LIMIT = 2**63 - 1


@attrs.frozen(kw_only=True)
class BrokerDefault:
    """A topic setting, with its name among the settings of brokers; `harmless` is Kafka's own default."""

    key: str
    broker_key: str
    harmless: str
    effect: str
    """What happens with a harmful value, as sentences."""
    is_reported_by_plans: bool = True
    """False = only `headwater doctor` reports it: it is a choice for all topics of a cluster, and the default
    of some managed clusters, so each of their drift reports would contain it."""

    def is_harmful(self, value: str, largest_request: int = LARGEST_REQUEST) -> bool:
        """Return whether the value harms topics; `largest_request` is `max.request.size` of producers."""
        if self.key == UNCLEAN_ELECTION:
            return value == "true"
        try:
            number = int(value)
        except ValueError:
            return False
        if self.key == LARGEST_MESSAGE:
            return number < largest_request
        return 0 <= number < _NO_LIMIT

    def has_effect(self, cleanup_policy: str) -> bool:
        """Return whether the setting has an effect on a topic with this `cleanup.policy`."""
        return self.key != RETENTION_BYTES or "delete" in cleanup_policy

    def harmless_value(self, largest_request: int = LARGEST_REQUEST) -> str:
        """Return a value that harms no topic; `largest_request` is `max.request.size` of producers."""
        is_larger = self.key == LARGEST_MESSAGE and largest_request > LARGEST_REQUEST
        return str(largest_request) if is_larger else self.harmless


BROKER_DEFAULTS: Mapping[str, BrokerDefault] = {
    each.key: each
    for each in (
        BrokerDefault(
            key=RETENTION_BYTES,
            broker_key="log.retention.bytes",
            harmless="-1",
            effect="When a partition exceeds this size, Kafka deletes its oldest records, whatever "
            "`retention.ms` is: unprocessed records of repartition topics, and state in windows.",
        ),
        BrokerDefault(
            key=OLDEST_TIMESTAMP,
            broker_key="log.message.timestamp.before.max.ms",
            harmless=str(_NO_LIMIT),
            effect="Brokers refuse records whose event time is older (InvalidTimestampException or "
            "InvalidRecordException). The application stops when it processes such a record, for example "
            "after a reset.",
        ),
        BrokerDefault(
            key=LARGEST_MESSAGE,
            broker_key="message.max.bytes",
            harmless="1048588",
            effect="Brokers refuse larger records, and the producers of the application may send them "
            "(`max.request.size`). The application stops when it writes one (RecordTooLargeException).",
        ),
        BrokerDefault(
            key=UNCLEAN_ELECTION,
            broker_key=UNCLEAN_ELECTION,
            harmless="false",
            effect="If all replicas in sync fail, another replica becomes the leader. Records that it does "
            "not have are lost without an error: state, unprocessed records, and parts of transactions.",
            is_reported_by_plans=False,
        ),
    )
}
"""Topic setting → its default."""
