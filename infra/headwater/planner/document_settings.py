"""The settings of a document that change how an application behaves, although no topic changes.

They are part of the setup record, so that a run shows which of them have changed since the last one. What a
run does to topics and ACLs is in its actions. The options in `setup` are not recorded: they hold for a run.
"""

import re
from collections.abc import Iterator, Mapping

import attrs

from headwater.compiler.configs.table import find_any_config
from headwater.model.records import SetupRecord
from headwater.model.topology import Application

VERSION = "kafkaStreams"
PROCESSORS = "processors"
UNSET = "unset"
_SECRET = re.compile(r"password|secret|token|jaas|credential|user\.info", re.IGNORECASE)


@attrs.frozen
class SettingChange:
    """A setting that differs from the last run; None = not set."""

    key: str
    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """Return the change of the value, as `automatic → manual`."""
        return " → ".join(UNSET if value is None else value for value in (self.before, self.after))


def document_settings(application: Application) -> Mapping[str, str]:
    """Return the recorded settings: the keys of `config`, `protocol` and `processors`; none is a secret."""
    processors = {} if application.processors is None else {PROCESSORS: str(application.processors)}
    return {"protocol": application.protocol.value, **processors, **dict(_public_configs(application))}


def setting_changes(application: Application, record: SetupRecord | None) -> tuple[SettingChange, ...]:
    """Return the settings that differ from the record, by key.

    A record without settings was written by a version of Headwater that recorded none: nothing is known.
    """
    if record is None or record.unfinished:
        return ()
    return tuple(sorted(_find_changes(application, record), key=lambda change: change.key))


def _find_changes(application: Application, record: SetupRecord) -> Iterator[SettingChange]:
    version = application.kafka_streams
    release = [str(version.major), str(version.minor)]
    # The patch is the newest that Headwater supports, whatever the document says.
    if application.names_version and record.kafka_streams and record.kafka_streams.split(".")[:2] != release:
        yield SettingChange(VERSION, record.kafka_streams, str(version))
    if not record.settings:
        return
    after = document_settings(application)
    for key in record.settings.keys() | after.keys():
        if record.settings.get(key) != after.get(key):
            yield SettingChange(key, record.settings.get(key), after.get(key))


def _public_configs(application: Application) -> Iterator[tuple[str, str]]:
    for key, value in application.config.items():
        type_ = find_any_config(key, application.kafka_streams)
        if not _SECRET.search(key) and (type_ is None or type_.type != "password"):
            yield key, value
