"""Why a transaction is cancelled: one reason for each of its entries, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    TransactionCanceledException,
    ValidationException,
)

Reason = dict[str, Any]

NO_REASON: Final[Reason] = {"Code": "None"}
_CODES: Final[dict[type[ApiError], str]] = {
    ConditionalCheckFailedException: "ConditionalCheckFailed",
    ValidationException: "ValidationError",
}


def reason_of(error: ApiError) -> Reason:
    """The reason that an entry's own error is."""
    reason: Reason = {"Code": _CODES[type(error)], "Message": error.message}
    return {**reason, **error.members}


def cancel(reasons: Sequence[Reason]) -> None:
    """Raise `TransactionCanceledException` unless no entry has a reason."""
    codes = [reason["Code"] for reason in reasons]
    if all(code == "None" for code in codes):
        return
    raise TransactionCanceledException(
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        f"[{', '.join(codes)}]",
        CancellationReasons=list(reasons),
    )
