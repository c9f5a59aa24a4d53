"""The files of an export in their bucket, and the manifests.

AWSDynamoDB/<id>/_started                  the bucket can be written
AWSDynamoDB/<id>/data/<name>.json.gz       a full export's data
AWSDynamoDB/data/<name>.json.gz            an incremental export's data
AWSDynamoDB/<id>/manifest-files.json       one line for each data file
AWSDynamoDB/<id>/manifest-summary.json     the export; each manifest has an .md5 beside it
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

import msgspec

from isotone.exchange.objects import Bucket, ObjectStore, one_part_etag

ExportFormat = Literal["DYNAMODB_JSON", "ION"]

FILES: Final = "manifest-files.json"
SUMMARY: Final = "manifest-summary.json"
ROOT: Final = "AWSDynamoDB"

_encode: Final = msgspec.json.Encoder().encode


class ExportedFile(NamedTuple):
    """A data file: its key, its number of items, the MD5 of its content, and its ETag if that is another."""

    key: str
    items: int
    md5: bytes
    etag: str = ""


class ExportLayout(NamedTuple):
    """The keys of one export. `prefix` is the request's."""

    prefix: str
    id: str
    form: ExportFormat
    is_incremental: bool = False

    def data_key(self, number: int) -> str:
        """The key of data file 0, 1, …; it is the same when a file is written again."""
        digest = hashlib.md5(f"{self.id}/{number}".encode(), usedforsecurity=False).digest()
        name = base64.b32encode(digest).decode().rstrip("=").lower()
        folder = "data" if self.is_incremental else f"{self.id}/data"
        end = "ion" if self.form == "ION" else "json"
        return f"{self._root}/{folder}/{name}.{end}.gz"

    def key(self, name: str) -> str:
        """The key of another file of the export."""
        return f"{self._root}/{self.id}/{name}"

    def manifests(
        self, files: Iterable[ExportedFile], summary: Mapping[str, Any]
    ) -> Iterator[tuple[str, bytes]]:
        """The keys and contents of the manifests, in the order in which they must be written."""
        lines = b"".join(_encode(_file_entry(file)) + b"\n" for file in files)
        for name, content in ((FILES, lines), (SUMMARY, _encode(summary))):
            digest = hashlib.md5(content, usedforsecurity=False).digest()
            key = self.key(name)
            yield f"{key.removesuffix('.json')}.md5", base64.b64encode(digest)
            yield key, content

    @property
    def _root(self) -> str:
        prefix = self.prefix.rstrip("/")
        return f"{prefix}/{ROOT}" if prefix else ROOT


def write_manifests(
    objects: ObjectStore,
    bucket: Bucket,
    manifests: Iterable[tuple[str, bytes]],
    files: Iterable[ExportedFile],
) -> None:
    """Write the manifests of an export whose data files are all there; raises `ObjectStoreError` if one is not.

    An export has manifests only if it is whole, and its folder may be moved away between any two of them.
    """
    data: dict[str, bytes | None] = {file.key: file.md5 for file in files}
    objects.check_kept(bucket, data)
    written = dict.fromkeys(data)
    for key, content in manifests:
        objects.put(bucket, key, content)
        written[key] = hashlib.md5(content, usedforsecurity=False).digest()
        objects.check_kept(bucket, written)


def _file_entry(file: ExportedFile) -> dict[str, Any]:
    return {
        "itemCount": file.items,
        "md5Checksum": base64.b64encode(file.md5).decode(),
        "etag": file.etag or one_part_etag(file.md5),
        "dataFileS3Key": file.key,
    }


def summary_of(
    layout: ExportLayout,
    *,
    export_arn: str,
    table_arn: str,
    table_id: str,
    bucket: str,
    started: float,
    ended: float,
    moments: tuple[float, ...],
    items: int,
    size: int,
    request: Mapping[str, Any],
) -> dict[str, Any]:
    """The summary manifest. `moments`: that of a full export, or the period of an incremental one, in seconds."""
    summary: dict[str, Any] = {
        "version": "2023-08-01" if layout.is_incremental else "2020-06-30",
        "exportArn": export_arn,
        "startTime": iso_time(started),
        "endTime": iso_time(ended),
        "tableArn": table_arn,
        "tableId": table_id,
    }
    names = ("exportFromTime", "exportToTime") if layout.is_incremental else ("exportTime",)
    summary |= {name: iso_time(moment) for name, moment in zip(names, moments, strict=True)}
    summary |= {
        "s3Bucket": bucket,
        "s3Prefix": request.get("S3Prefix"),
        "s3SseAlgorithm": request.get("S3SseAlgorithm", "AES256"),
        "s3SseKmsKeyId": request.get("S3SseKmsKeyId"),
        "manifestFilesS3Key": layout.key(FILES),
        "billedSizeBytes": size,
        "itemCount": items,
        "outputFormat": layout.form,
    }
    if layout.is_incremental:
        wanted = request["IncrementalExportSpecification"]
        summary["outputView"] = wanted.get("ExportViewType", "NEW_AND_OLD_IMAGES")
        summary["exportType"] = "INCREMENTAL_EXPORT"
    return summary


def iso_time(seconds: float) -> str:
    """A time in the form that manifests use."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
