"""Buckets of objects: the part of S3 that exports and imports need, and a folder that implements it.

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
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, Protocol, cast

from isotone.folder_sync import sync_folder

if TYPE_CHECKING:
    from io import BufferedReader

_UNFINISHED: Final = ".isotone-part"


class StoredObject(NamedTuple):
    """An object in a bucket."""

    key: str
    size: int


class Bucket(NamedTuple):
    """A bucket in a request: its expected owner, and the encryption of new objects."""

    name: str
    owner: str | None = None
    encryption: str | None = None  # AES256 or KMS
    kms_key: str | None = None


def bucket_of(request: Mapping[str, Any]) -> Bucket:
    """The bucket that the members of a request name."""
    others = ("S3BucketOwner", "S3SseAlgorithm", "S3SseKmsKeyId")
    return Bucket(request["S3Bucket"], *(request.get(name) for name in others))


class ObjectStoreError(Exception):
    """A bucket or an object cannot be used: `code` and `message` are what the service reports about S3."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class ObjectStoreUnavailable(ObjectStoreError):
    """The buckets do not answer, so other objects would fail, too."""


class ObjectStoreClosed(Exception):
    """The object store was closed during a request. Nothing has failed; another process can continue the work."""


class ObjectStore(Protocol):
    """Buckets of objects. A method that fails raises `ObjectStoreError`; after `close`, `ObjectStoreClosed`."""

    def list(self, bucket: Bucket, prefix: str) -> list[StoredObject]:
        """The objects whose keys begin with a prefix, in the order of their keys."""

    def open(self, bucket: Bucket, key: str, size: int | None = None) -> BinaryIO:
        """The content of an object, from its beginning. The caller closes it. `size` is the one with which it was listed."""

    def put(self, bucket: Bucket, key: str, content: bytes) -> str:
        """Store an object, replacing any with the same key; returns its ETag. It is durable when this returns."""

    def check_kept(self, bucket: Bucket, md5s: Mapping[str, bytes | None]) -> None:
        """Raise `ObjectStoreError` if stored objects are not as they were, by their MD5; None: if they are not there."""

    def close(self) -> None:
        """Make requests of other threads end."""


class Folder:
    """Buckets as the sub-folders of a folder. A bucket is created when the first object is put into it."""

    __slots__ = ("root",)

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root: Path = Path(root).absolute()

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

    def open(self, bucket: Bucket, key: str, size: int | None = None) -> BinaryIO:
        path = self._path(bucket, key)
        try:
            found = path.stat()
            # opening a pipe would block until it has a writer
            if not stat.S_ISREG(found.st_mode):
                raise ObjectStoreError("S3Failure", f"{path} cannot be used: it is no regular file")
            if size not in (
                None,
                found.st_size,
            ):
                # An object of S3 changes as a whole, a file does not.
                raise ObjectStoreError(
                    "S3Failure",
                    f"{path} was changed after it was listed: it has {found.st_size} bytes, and had {size}",
                )
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
            sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):  # its folder does not exist or cannot be written
                unfinished.unlink(missing_ok=True)
            raise _failure(error, path) from error
        return one_part_etag(hashlib.md5(content, usedforsecurity=False).digest())

    def check_kept(self, bucket: Bucket, md5s: Mapping[str, bytes | None]) -> None:
        for key, md5 in md5s.items():
            path = self._path(bucket, key)
            try:
                with cast("BufferedReader", self.open(bucket, key)) as file:
                    is_same = md5 is None or hashlib.file_digest(file, _md5).digest() == md5
            except (ObjectStoreError, OSError):
                is_same = False
            if not is_same:
                raise ObjectStoreError(
                    "S3Failure", f"{path} was deleted, replaced or changed after it was written"
                )

    def close(self) -> None:
        """Do nothing: no request of a folder waits."""

    def _path(self, bucket: Bucket, key: str) -> Path:
        if ".." in key.split("/") or "\0" in key:
            raise ObjectStoreError(
                "S3InvalidKey", f"The key {key!r} leaves its bucket: write it without '..'"
            )
        return self.root / bucket.name / key.lstrip("/")


def _md5() -> Any:
    return hashlib.md5(usedforsecurity=False)


def one_part_etag(md5: bytes) -> str:
    """The ETag of an object that was uploaded in one part, as the service computes it: the hash of its hash."""
    return f"{hashlib.md5(md5, usedforsecurity=False).hexdigest()}-1"


def _files(folder: Path, above: set[tuple[int, int]]) -> Iterator[tuple[Path, int]]:
    """The files below a folder, with their sizes; `above` are the folders that contain it, to detect loops of links.

    Nothing unreadable is left out: a file raises when it is opened, a folder at once.
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
    """The size of a file, or None for a folder. If it cannot be determined, opening the file raises the error."""
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
