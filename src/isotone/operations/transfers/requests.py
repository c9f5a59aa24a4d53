"""Shared by the actions on exports, imports and bulk operations: buckets, tokens, ARNs, descriptions, pages of lists."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeGuard,
    TypeVar,
)

from msgspec import Meta

from isotone import limits
from isotone.engine import transfers
from isotone.engine.engine import Engine
from isotone.engine.transfers import Export, Job
from isotone.errors import ApiError, LimitExceededException, ValidationException
from isotone.exchange import compression
from isotone.operations.action import ActionRule, Answer, Rules
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import ApiStructure
from isotone.operations.table_lookup import table_arn, table_name

AnyJob = TypeVar("AnyJob", bound=Job)

TableArn: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1024)]
TransferArn: TypeAlias = Annotated[str, Meta(min_length=37, max_length=1024)]
ClientToken: TypeAlias = Annotated[str, Meta(pattern=r"^[^\$]+\Z")]
Bucket: TypeAlias = Annotated[
    str, Meta(max_length=255, pattern=r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+\Z")
]
BucketOwner: TypeAlias = Annotated[str, Meta(pattern=r"[0-9]{12}")]
Prefix: TypeAlias = Annotated[str, Meta(max_length=1024)]
SseAlgorithm: TypeAlias = Literal["AES256", "KMS"]
SseKey: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2048)]
PageSize: TypeAlias = Annotated[int, Meta(ge=1, le=limits.TRANSFER_PAGE)]
InputCompression: TypeAlias = Literal["GZIP", "ZSTD", "NONE"]

_NO_BUCKETS: Final = (
    "There are no buckets: name a folder for them, or the URL of an S3 endpoint, "
    "with isotone.open(..., s3='folder') or isotone serve --s3 folder"
)


def buckets_exist(*prefixes: Callable[[Any], str | None]) -> ActionRule:
    """The rule that there are buckets, and that no prefix of a request leaves its own."""

    def check(engine: Engine, request: Any) -> None:
        if engine.objects is None:
            raise ValidationException(_NO_BUCKETS)
        for prefix in (read(request) or "" for read in prefixes):
            if ".." in prefix.split("/") or "\0" in prefix:
                raise ValidationException(
                    f"The prefix {prefix!r} leaves its bucket: write it without '..'"
                )

    return ActionRule("no buckets, or a prefix that leaves its own", check)


def can_decompress(wanted: Callable[[Any], InputCompression | None]) -> ActionRule:
    """The rule that this Python can read the compression of a request."""

    def check(request: Any) -> None:
        if not compression.can_read(wanted(request) or "NONE"):
            raise ValidationException(compression.NO_ZSTD)

    return ActionRule("a compression that this Python cannot read", check)


def key_is_used(encrypted: Callable[[Any], Any]) -> ActionRule:
    """The rule that only files that are encrypted with a key have one."""

    def check(request: Any) -> None:
        files = encrypted(request)
        if files.s3_sse_kms_key_id is not None and files.s3_sse_algorithm != "KMS":
            raise ValidationException(
                f"{INVALID}S3SseKmsKeyId is only supported for S3SseAlgorithm KMS"
            )

    return ActionRule("S3SseKmsKeyId without KMS", check)


def members_of(value: Any) -> Any:
    """A structure as a JSON document, without absent members at any depth."""
    if isinstance(value, ApiStructure):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        found = {encoded: getattr(value, name) for name, encoded in names}
        return {name: members_of(each) for name, each in found.items() if each is not None}
    if isinstance(value, list):
        return [members_of(each) for each in value]
    return value


# Jobs of one kind


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind(Generic[AnyJob]):
    """Begins, describes and lists the jobs of one kind.

    `name` is the one in their ARNs. At most `most` run at once. A description is in the member `described` of an
    answer, a page in `listed`.
    """

    name: str
    most: int
    conflict: type[ApiError]
    missing: Callable[[str], ApiError]
    described: str
    listed: str
    description: Callable[[Engine, AnyJob], dict[str, Any]]
    summary: Callable[[Engine, AnyJob], dict[str, Any]]

    def begin(
        self, engine: Engine, request: ApiStructure, new: Callable[[dict[str, Any]], AnyJob]
    ) -> Answer:
        """Begin the job that `new` makes from a request's members, unless an earlier request with its token did."""
        members = members_of(request)
        with engine.writing:
            job = self._repeated(engine, members)
            if job is None:
                job = new(members)
                transfers.begin(engine, job)
            return {self.described: self.description(engine, job)}

    def of_new(self, *rules: ActionRule) -> Rules:
        """Rules on requests that begin a job: that of their token first, then that jobs are few, then `rules`.

        A request that repeats an earlier one need not keep them.
        """

        def unless_repeated(rule: ActionRule) -> ActionRule:
            def check(engine: Engine, request: ApiStructure) -> None:
                if self._repeated(engine, members_of(request)) is None:
                    rule.check(engine, request)

            return ActionRule(rule.says, check)

        token = ActionRule("a ClientToken that was used for another request", lambda *_: None)
        running = ActionRule(
            "too many jobs at a time", lambda engine, request: self._check_running(engine)
        )
        return tuple(map(unless_repeated, (token, running, *rules)))

    def _check_running(self, engine: Engine) -> None:
        if sum(job.ended is None for job in self._known(engine)) >= self.most:
            noun = self.name.replace("-", " ")
            raise LimitExceededException(
                f"Subscriber limit exceeded: Only {self.most} {noun}s can run simultaneously"
            )

    def is_known(self, arn: Callable[[Any], str]) -> ActionRule:
        """The rule that there is a job with the ARN of a request."""
        return ActionRule(
            f"no such {self.name}", lambda engine, request: self.find(engine, arn(request))
        )

    def find(self, engine: Engine, arn: str) -> AnyJob:
        """The job with an ARN. Raises `missing` if there is none."""
        job = transfers.find(engine, arn.rpartition("/")[2])
        if not self._is_ours(job) or job_arn(engine, job) != arn:
            raise self.missing(arn)
        return job

    def describe(self, engine: Engine, arn: str) -> Answer:
        """The answer that describes the job with an ARN."""
        return {self.described: self.description(engine, self.find(engine, arn))}

    def page(
        self, engine: Engine, size: int, token: str | None, table: str | None = None
    ) -> Answer:
        """The answer with a page of jobs, newest first, for the table with an ARN or for all.

        A token is the id of the last job in hexadecimal, padded to the service's length. A bad one is a
        ValidationException.
        """
        with engine.reading:
            jobs = self._known(engine)
            if table is not None:
                name = table_name(table, "tableArn")
                jobs = [job for job in jobs if job.table == name]
            if token is not None:
                last = _id_in(token)
                jobs = [job for job in jobs if job.id < last]
            page = jobs[:size]
            answer: dict[str, Any] = {self.listed: [self.summary(engine, job) for job in page]}
        if len(jobs) > len(page):
            answer["NextToken"] = page[-1].id.ljust(_WIDTH).encode().hex()
        return answer

    def _repeated(self, engine: Engine, request: dict[str, Any]) -> AnyJob | None:
        """The job that an earlier request with the same token began. Raises `conflict` if that request was different."""
        token = request.get("ClientToken")
        oldest = engine.clock.now() - limits.TRANSFER_TOKEN_LIFETIME
        for job in self._known(engine):
            is_valid = job.ended is None or job.ended > oldest
            if token is not None and is_valid and job.request.get("ClientToken") == token:
                if job.request != request:
                    raise self.conflict(f"The client token was used with other parameters: {token}")
                return job
        return None

    def _known(self, engine: Engine) -> list[AnyJob]:
        """The jobs that are still shown, newest first."""
        oldest = engine.clock.now() - limits.TRANSFER_RETENTION
        return [
            job
            for job in reversed(transfers.known(engine))
            if self._is_ours(job) and (job.ended is None or job.ended > oldest)
        ]

    def _is_ours(self, job: Job | None) -> TypeGuard[AnyJob]:
        return job is not None and _name(job) == self.name


def job_arn(engine: Engine, job: Job) -> str:
    """The ARN of a job."""
    return f"{table_arn(engine, job.table)}/{_name(job)}/{job.id}"


def _name(job: Job) -> str:
    if isinstance(job, Export):
        return "export"
    return "bulk-operation" if job.is_bulk else "import"


TABLE_IS_NAMED: Final = ActionRule(
    "an invalid TableArn",
    lambda request: request.table_arn is None or table_name(request.table_arn, "tableArn"),
)
"""The rule on the table whose jobs are listed."""

TOKEN_IS_VALID: Final = ActionRule(
    "an invalid NextToken",
    lambda request: request.next_token is None or _id_in(request.next_token),
)
"""The rule on the place at which a list goes on."""

_WIDTH: Final = 56  # characters; 112 in hexadecimal, the minimum of ListImports


def _id_in(token: str) -> str:
    if re.fullmatch("[0-9a-f]{112}", token) is None:
        raise ValidationException("Invalid NextToken")
    return bytes.fromhex(token).decode("latin-1").rstrip()


def failure_members(job: Job) -> dict[str, Any]:
    """When a job ended, and why it failed."""
    members: dict[str, Any] = {}
    if job.ended is not None:
        members["EndTime"] = job.ended
    if job.failure is not None:
        members["FailureCode"] = job.failure.code
        members["FailureMessage"] = job.failure.message
    return members
