"""The attribute by which a table's items expire: turned on where it is off, compared where it is on."""

from __future__ import annotations

from isotone.errors import ValidationException
from isotone.model.declaring.table import Table
from isotone.model.steps import Call, Steps


def expiry_attribute(table: Table) -> str | None:
    """The attribute by which the table's items expire; None where no entity declares that it does."""
    mortal = any("expires" in schema.by_role for schema in table.entities.values())
    return table.ttl if mortal else None


def ensure_expiry(table: Table) -> Steps[None]:
    """Turn expiry on, where an entity expires and nothing does yet."""
    wanted = expiry_attribute(table)
    if wanted is None or (yield from _current_expiry(table)) is not None:
        return
    specification = {"AttributeName": wanted, "Enabled": True}
    request = {"TableName": table.name, "TimeToLiveSpecification": specification}
    try:
        yield Call("UpdateTimeToLive", request)
    except ValidationException:
        # It is on already: by another process, or by a request whose answer was lost.
        if (yield from _current_expiry(table)) != wanted:
            raise


def expiry_difference(table: Table, *, may_lack: bool) -> Steps[str | None]:
    """How the table's expiry is not as declared, in words; `may_lack` where it can still be turned on."""
    wanted = expiry_attribute(table)
    if wanted is None:
        return None
    actual = yield from _current_expiry(table)
    if actual == wanted or (may_lack and actual is None):
        return None
    has = f"by {actual!r}" if actual else "nothing"
    return f"expires {has}, declared is {wanted!r}"


def _current_expiry(table: Table) -> Steps[str | None]:
    response = yield Call("DescribeTimeToLive", {"TableName": table.name})
    described = response.get("TimeToLiveDescription", {})
    on = described.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return described.get("AttributeName") if on else None
