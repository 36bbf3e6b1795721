"""The record of the active client of an application.

It is the metadata of an offset, in a consumer group of its own. Nothing reads records with this group.
"""

import json

import attrs

_SUFFIX = "-headwater-client"


def client_group(application: str) -> str:
    """Return the name of the consumer group of the record."""
    return f"{application}{_SUFFIX}"


def is_client_group(group: str) -> bool:
    """Return whether a consumer group has only the record of an active client."""
    return group.endswith(_SUFFIX)


@attrs.frozen(kw_only=True)
class ClientRecord:
    """Which client of an application is active: of several, one processes records.

    `process` is a random id of the active process, `name` its name for people. `term` grows with each client
    that becomes active. `lock_id` identifies the file of the checkpoint that the process has locked, on its
    machine; empty: it has locked none, or the id is not known. `renewals` grows while the process runs.
    `has_ended`: it has stopped. `spark` is the master and the id of its Spark application on a standalone
    cluster, if nothing else uses this Spark application; empty: unknown.
    """

    term: int
    process: str
    name: str = ""
    lock_id: str = ""
    renewals: int = 0
    has_ended: bool = False
    spark: str = ""

    def encode(self) -> str:
        """Return the text of the metadata."""
        return json.dumps(attrs.asdict(self), separators=(",", ":"))

    def renewed(self) -> "ClientRecord":
        """Return the record that proves that the process still runs."""
        return attrs.evolve(self, renewals=self.renewals + 1)

    def ended(self) -> "ClientRecord":
        """Return the record with which another client may become active at once."""
        return attrs.evolve(self, has_ended=True)


def decode_record(text: str) -> ClientRecord | None:
    """Return the record; None if the text is empty, or of another program.

    Fields that this version does not know are ignored: a client of another version is a client, too.
    """
    known = attrs.fields_dict(ClientRecord).keys()
    try:
        return ClientRecord(**{name: value for name, value in json.loads(text).items() if name in known})
    except (ValueError, TypeError, AttributeError):
        return None
