"""Buckets of objects: the interface of S3 that exports and imports need, and a folder that implements it.

A folder has one sub-folder for each bucket, in which the key `2026/a.json` is the file `2026/a.json`. Like S3, it shows
an object only when it is complete: it is written under another name first.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

_UNFINISHED: Final = ".isotone-part"


class StoredObject(NamedTuple):
    """An object in a bucket."""

    key: str
    size: int


class Bucket(NamedTuple):
    """A bucket as a request names it: who must own it, and how its new objects are to be encrypted."""

    name: str
    owner: str | None = None
    encryption: str | None = None  # AES256 or KMS
    kms_key: str | None = None


def bucket_of(request: Mapping[str, Any]) -> Bucket:
    """The bucket that the members of a request name."""
    others = ("S3BucketOwner", "S3SseAlgorithm", "S3SseKmsKeyId")
    return Bucket(request["S3Bucket"], *(request.get(name) for name in others))


class ObjectStoreError(Exception):
    """A bucket or an object cannot be used: `code` and `message` as the service reports them of S3."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class ObjectStoreUnavailable(ObjectStoreError):
    """The buckets do not answer. Other objects would fail, too."""


class ObjectStoreClosed(Exception):
    """The object store was closed while it worked: nothing has failed, and another process can continue."""


class ObjectStore(Protocol):
    """Buckets of objects. A method that fails raises `ObjectStoreError`; after `close`, `ObjectStoreClosed`."""

    def list(self, bucket: Bucket, prefix: str) -> list[StoredObject]:
        """The objects whose keys begin with a prefix, in the order of their keys."""

    def open(self, bucket: Bucket, key: str) -> BinaryIO:
        """The content of an object, from its beginning. The caller closes it."""

    def put(self, bucket: Bucket, key: str, content: bytes) -> str:
        """Store an object, in place of any with the same key; returns its ETag. It is durable on return."""

    def close(self) -> None:
        """End what another thread waits for."""


class Folder:
    """Buckets as the sub-folders of a folder. A bucket is created when the first object is put into it."""

    __slots__ = ("root",)

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).absolute()

    def list(self, bucket: Bucket, prefix: str) -> list[StoredObject]:
        folder = self.root / bucket.name
        if not folder.is_dir():
            raise ObjectStoreError(
                "S3NoSuchBucket",
                f"The specified bucket does not exist: there is no folder {folder}",
            )
        begin = self._path(bucket, prefix.rpartition("/")[0])
        found = (
            StoredObject(path.relative_to(folder).as_posix(), size)
            for path, size in _files(begin, set())
        )
        return sorted(each for each in found if each.key.startswith(prefix))

    def open(self, bucket: Bucket, key: str) -> BinaryIO:
        path = self._path(bucket, key)
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
                raise ObjectStoreError("S3Failure", f"{path} cannot be used: it is no regular file")
            return path.open("rb")
        except OSError as error:
            raise _failure(error, path) from error

    def put(self, bucket: Bucket, key: str, content: bytes) -> str:
        path = self._path(bucket, key)
        unfinished = path.with_name(f".{path.name}{_UNFINISHED}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            _sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):  # its folder cannot be written, or is none
                unfinished.unlink(missing_ok=True)
            raise _failure(error, path) from error
        return one_part_etag(hashlib.md5(content, usedforsecurity=False).digest())

    def close(self) -> None:
        """Do nothing: what a folder does ends by itself."""

    def _path(self, bucket: Bucket, key: str) -> Path:
        if ".." in key.split("/") or "\0" in key:
            raise ObjectStoreError(
                "S3InvalidKey", f"The key {key!r} leaves its bucket: write it without '..'"
            )
        return self.root / bucket.name / key.lstrip("/")


def one_part_etag(md5: bytes) -> str:
    """The ETag of an object that was uploaded in one part, as the service does: the hash of its hash."""
    return f"{hashlib.md5(md5, usedforsecurity=False).hexdigest()}-1"


def _files(folder: Path, above: set[tuple[int, int]]) -> Iterator[tuple[Path, int]]:
    """The files of a folder and those in it, with their sizes; `above` are the folders to which a link may lead back.

    What cannot be read is an error, not left out: a file when it is opened, a folder at once.
    """
    try:
        found = folder.stat()
        paths = list(folder.iterdir()) if stat.S_ISDIR(found.st_mode) else []
    except FileNotFoundError:
        return
    except OSError as error:
        raise _failure(error, folder) from error
    place = found.st_dev, found.st_ino
    for path in paths if place not in above else ():
        size = _size(path)
        if size is None:
            yield from _files(path, {*above, place})
        elif not path.name.endswith(_UNFINISHED):
            yield path, size


def _size(path: Path) -> int | None:
    """The size of a file, or None for a folder. One that cannot be looked at has an error when it is opened."""
    try:
        path.name.encode()
        found = path.stat()
    except UnicodeEncodeError:
        message = f"A name in {path.parent} is not text in UTF-8: {path.name!r}"
        raise ObjectStoreError("S3InvalidKey", message) from None
    except OSError:
        return 0
    return None if stat.S_ISDIR(found.st_mode) else found.st_size


def _failure(error: OSError, path: Path) -> ObjectStoreError:
    if isinstance(error, FileNotFoundError):
        link = f", a link to {os.path.realpath(path)}" if path.is_symlink() else ""
        return ObjectStoreError("S3NoSuchKey", f"The specified key does not exist: {path}{link}")
    if isinstance(error, PermissionError):
        return ObjectStoreError("S3AccessDenied", f"Access denied: {path}")
    return ObjectStoreError("S3Failure", f"{path} cannot be used: {error.strerror or error}")


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
