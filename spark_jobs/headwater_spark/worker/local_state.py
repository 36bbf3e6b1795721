"""The state of a task on local disk: one LMDB environment, and a file for the prepared batch.

Writes do not wait for the disk, so they survive a crash of the process, but not of the machine. So the
environment stores the boot id of the machine. If it was not closed, and the boot id has changed, it is
deleted, and the state is restored from the changelog topics. If the boot id is unknown, each batch waits for
the disk.
"""

import errno
import json
import marshal
import os
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import lmdb

from headwater_spark.engine.stores.backend import Batch, BatchedState, MemoryBackend, Prepared
from headwater_spark.engine.stores.interfaces import SortedReads
from headwater_spark.engine.stores.overlay import Changes
from headwater_spark.worker.lmdb_bytes import Databases, LmdbBytes, Snapshot, is_long, write_entry
from headwater_spark.worker.state_folders import create_private_folder, is_disk_full, named_disk_failures

_BATCH = b"batch"
_LAYOUTS = b"layouts"
"""A key of its own, which earlier versions of Headwater ignore."""
_BOOT = b"boot"
_CLOSED = b"closed"
_MIN_MAP_BYTES = 64 * 1024 * 1024
_MAX_DATABASES = 4096
_PREPARED = "prepared"
_CHECKSUM = 4
_FOR_THIS_USER = 0o600
_LOCK_BYTES = 8192
"""The size of LMDB's lock file for its default number of readers."""


class LmdbBackend:
    """`Backend` in a folder. Only one process may open it at a time (LMDB's lock file does not ensure it)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._boot = _boot_id()
        with named_disk_failures(folder):
            create_private_folder(folder)
            self._open_or_recreate()

    def open(self, store: str) -> SortedReads:
        if store not in self._databases:
            names = self._stored_names()
            short = self._handle(b"s:" + store.encode(), create=True)
            long = self._handle(b"l:" + store.encode()) if b"l:" + store.encode() in names else None
            self._databases[store] = Databases(short, long)
            self._renew()
        return LmdbBytes(self._snapshot, self._databases[store])

    def latest(self) -> Batch:
        return self._latest

    def apply(self, changes: Changes, batch: Batch) -> None:
        for store, entries in changes.items():
            self.open(store)
            if self._databases[store].long is None and any(map(is_long, entries)):
                self._databases[store].long = self._handle(b"l:" + store.encode(), create=True)
        with named_disk_failures(self._folder):
            self._write_growing(changes, batch)
        self._latest = batch
        self._renew()

    def save_prepared(self, prepared: Prepared) -> None:
        parts: Any = (prepared.batch, prepared.metadata, prepared.changes)
        content = marshal.dumps(parts)
        draft = self._folder / f"{_PREPARED}.new"
        with named_disk_failures(self._folder):
            with open(draft, "wb", opener=_open_for_this_user) as file:
                file.write(zlib.crc32(content).to_bytes(_CHECKSUM, "big"))
                file.write(content)
                if self._boot is None:
                    file.flush()
                    os.fsync(file.fileno())
            draft.replace(self._folder / _PREPARED)

    def prepared(self) -> Prepared | None:
        try:
            stored: bytes = (self._folder / _PREPARED).read_bytes()
        except FileNotFoundError:
            return None
        content = stored[_CHECKSUM:]
        if zlib.crc32(content).to_bytes(_CHECKSUM, "big") != stored[:_CHECKSUM]:
            return None
        return Prepared(*marshal.loads(content))  # noqa: S302 - our own file, with a checksum

    def clear(self) -> None:
        stores = [self._handle(name) for name in self._stored_names() if name != b"meta"]
        with named_disk_failures(self._folder), self._environment.begin(write=True) as transaction:
            for handle in stores:
                transaction.drop(handle, delete=False)
            transaction.delete(_BATCH, db=self._meta)
            transaction.delete(_LAYOUTS, db=self._meta)
        (self._folder / _PREPARED).unlink(missing_ok=True)
        self._latest = Batch()
        self._renew()

    def layouts(self) -> Mapping[str, str]:
        stored = self._snapshot.transaction.get(_LAYOUTS, db=self._meta)
        found: dict[str, str] = json.loads(stored) if stored else {}
        return found

    def replace_layouts(self, layouts: Mapping[str, str], cleared: Collection[str], batch: Batch) -> None:
        names = {prefix + store.encode() for store in cleared for prefix in (b"s:", b"l:")}
        stores = [self._handle(name) for name in self._stored_names() & names]
        with named_disk_failures(self._folder), self._environment.begin(write=True) as transaction:
            for handle in stores:
                transaction.drop(handle, delete=False)
            transaction.put(_LAYOUTS, json.dumps(dict(layouts)).encode(), db=self._meta)
            transaction.put(_BATCH, _encode_metadata(batch), db=self._meta)
        self._latest = batch
        self._renew()

    def close(self) -> None:
        """Wait for the disk, so that the next process trusts the environment."""
        self._snapshot.transaction.abort()
        with named_disk_failures(self._folder):
            self._environment.sync(True)  # noqa: FBT003 - LMDB's own signature
            with self._environment.begin(write=True) as transaction:
                transaction.put(_CLOSED, b"1", db=self._meta)
            self._environment.sync(True)  # noqa: FBT003
        self._environment.close()

    def release(self) -> None:
        """Release the environment without waiting for the disk."""
        self._snapshot.transaction.abort()
        self._environment.close()

    def _open_or_recreate(self) -> None:
        try:
            self._open()
            trusted = self._is_trusted()
        except lmdb.Error as error:
            if is_disk_full(self._folder, error):
                raise  # to restore the state would need as much space
            self._recreate()
            return
        if not trusted:
            self._environment.close()
            self._recreate()

    def _open(self) -> None:
        _reserve_lock_file(self._folder)
        self._environment = lmdb.open(
            str(self._folder),
            map_size=max(_MIN_MAP_BYTES, _stored_size(self._folder)),
            max_dbs=_MAX_DATABASES,
            sync=self._boot is None,
            metasync=self._boot is None,
            readahead=False,
            max_spare_txns=2,
            mode=_FOR_THIS_USER,
        )
        self._databases: dict[str, Databases] = {}
        self._meta = self._environment.open_db(b"meta")
        self._snapshot = Snapshot(self._environment.begin())
        stored = self._snapshot.transaction.get(_BATCH, db=self._meta)
        self._latest = _decode_metadata(stored) if stored else Batch()

    def _recreate(self) -> None:
        for file in self._folder.iterdir():
            file.unlink()
        self._open()
        self._is_trusted()

    def _is_trusted(self) -> bool:
        """Return whether the environment survived the last crash; mark it as open in this boot."""
        with self._environment.begin(write=True) as transaction:
            found = transaction.get(_BOOT, db=self._meta)
            closed = transaction.pop(_CLOSED, db=self._meta)
            transaction.put(_BOOT, self._boot or b"", db=self._meta)
        self._renew()
        return found is None or closed is not None or self._boot is None or found == self._boot

    def _write(self, changes: Changes, batch: Batch) -> None:
        with self._environment.begin(write=True) as transaction:
            for store, entries in changes.items():
                databases = self._databases[store]
                for key in sorted(entries):
                    write_entry(transaction, databases, key, entries[key])
            transaction.put(_BATCH, _encode_metadata(batch), db=self._meta)

    def _write_growing(self, changes: Changes, batch: Batch) -> None:
        while True:
            try:
                return self._write(changes, batch)
            except lmdb.MapFullError:
                self._snapshot.transaction.abort()
                self._environment.set_mapsize(2 * self._environment.info()["map_size"])

    def _handle(self, name: bytes, *, create: bool = False) -> Any:  # noqa: ANN401 - LMDB's handle
        self._snapshot.transaction.abort()
        try:
            with named_disk_failures(self._folder):
                return self._environment.open_db(name, create=create)
        finally:
            self._renew()

    def _stored_names(self) -> frozenset[bytes]:
        return frozenset(bytes(name) for name in self._snapshot.transaction.cursor().iternext(values=False))

    def _renew(self) -> None:
        self._snapshot.transaction.abort()
        self._snapshot.transaction = self._environment.begin()


def _open_for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, _FOR_THIS_USER)


def _encode_metadata(batch: Batch) -> bytes:
    content = {
        "version": batch.version,
        "metadata": dict(batch.metadata),
        "offsets": dict(batch.offsets),
    }
    return json.dumps(content).encode()


def _decode_metadata(stored: bytes) -> Batch:
    """Return the batch; what a later version of Headwater has added is not known."""
    content = json.loads(stored)
    return Batch(content["version"], content["metadata"], content["offsets"])


def _stored_size(folder: Path) -> int:
    data = folder / "data.mdb"
    return 2 * data.stat().st_size if data.exists() else 0


def _reserve_lock_file(folder: Path) -> None:
    """Reserve disk space for LMDB's lock file; raises `OSError` if there is none.

    LMDB maps the file, so a full disk would end the process by a signal (SIGBUS).
    """
    if not hasattr(os, "posix_fallocate"):
        return
    file = os.open(folder / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(file, 0, max(_LOCK_BYTES, os.fstat(file).st_size))
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # unless the file system cannot do that
            raise
    finally:
        os.close(file)


def _boot_id() -> bytes | None:
    """Return the boot id of the machine; None = unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return None


class LocalState(BatchedState):
    """State in a folder of the local disk: `<state.dir>/<application id>/<sub-topology>_<partition>`."""

    def __init__(self, folder: Path) -> None:
        self._lmdb = LmdbBackend(folder)
        super().__init__(self._lmdb)

    def release(self) -> None:
        """Release the folder to another process, without waiting for the disk."""
        self._lmdb.release()


class MemoryState(BatchedState):
    """State that ends with the process."""

    def __init__(self) -> None:
        super().__init__(MemoryBackend())
