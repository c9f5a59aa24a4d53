"""Tries a design file of AWS's modelling tool (`dynamodb_data_model.json`): its tables, items and access patterns.

    {"tables": [CreateTable's requests], "items": {"Orders": [{"PutRequest": {"Item": {…}}}]},
     "access_patterns": [{"pattern": "1", "description": "…", "table": "Orders", "index": "GSI1",
                          "dynamodb_operation": "Query", "implementation": "aws dynamodb query …"}]}

The tables are made in memory, the items put into them, and the commands of the patterns executed there, one after the
other, as the file lists them. Nothing else is touched, and a command is read here, never run. A pattern fails if its
command is refused; what is odd about it otherwise is a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from isotone.advisor.lint import lint
from isotone.backends import embedded
from isotone.backends.interface import Backend
from isotone.errors import ApiError, UsageError
from isotone.mcp.aws_commands import AwsCommand, action_of
from isotone.model import connect
from isotone.schema.document import parsed_json, shown
from isotone.tables.pace import units_of

FILE_NAME: Final = "dynamodb_data_model.json"
_LARGEST: Final = 20_000_000  # bytes of a file
_SHOWN: Final = 3  # items of a pattern's answer
_READS: Final = ("Query", "Scan", "GetItem", "BatchGetItem", "TransactGetItems")
_BATCHED: Final = {"TransactWrite": "TransactWriteItems", "TransactGet": "TransactGetItems"}


def read_data_model(folder: Path, path: str | None) -> Any:
    """The content of a file in a folder; raises `UsageError`, also for a file elsewhere."""
    name = path or FILE_NAME
    if "\0" in name:
        raise UsageError(f"{name!r:.60} is no path")
    place = (folder / name).resolve()
    if not place.is_relative_to(folder.resolve()):
        raise UsageError(f"{name} is outside of {folder}; this server reads no other folder")
    if place.suffix != ".json" or not place.is_file():
        raise UsageError(
            f"there is no .json file {name} in {folder}; give its path, or its content as document"
        )
    if place.stat().st_size > _LARGEST:
        raise UsageError(f"{name} has more than {_LARGEST:,} bytes")
    try:
        text = place.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not a text in UTF-8") from None
    return parsed_json(text, name)


def validate(document: Any) -> dict[str, Any]:
    """What the tables, items and access patterns of a design file do in memory, as JSON values."""
    tables = _member(document, "tables", list)
    items = _member(document, "items", dict)
    patterns = _member(document, "access_patterns", list)
    with embedded.open(":memory:") as database:
        made = [_made(database, each) for each in tables]
        put = [_put(database, name, entries) for name, entries in items.items()]
        with connect(database, check_keys=False) as store:
            report = lint(store=store)  # of the sample, before a pattern writes
        tried = [_tried(database, each) for each in patterns]
    failed = [each for each in tried if each["passed"] is False]
    valid = all(each["made"] for each in made) and not any(each["refused"] for each in put)
    return {
        "valid": valid and not failed,
        "tables": made,
        "items": put,
        "passed": sum(each["passed"] is True for each in tried),
        "failed": len(failed),
        "not_tried": sum(each["passed"] is None for each in tried),
        "patterns": tried,
        "findings": report.to_dict()["findings"],
    }


def _member(document: Any, name: str, kind: type) -> Any:
    if not isinstance(document, dict):
        raise UsageError(f"a design file is a JSON object, not {shown(document)}")
    found = document.get(name)
    if not isinstance(found, kind):
        what = "a list" if kind is list else "an object"
        raise UsageError(f"a design file has {name!r}, {what}; here it is {shown(found)}")
    return found


def _made(backend: Backend, request: Any) -> dict[str, Any]:
    name = request.get("TableName") if isinstance(request, dict) else None
    try:
        if name is None:
            raise UsageError(f"a table is a request of CreateTable, not {shown(request)}")
        backend.execute("CreateTable", request)
    except (ApiError, UsageError) as error:
        return {"table": name, "made": False, "error": str(error)}
    return {"table": name, "made": True}


def _put(backend: Backend, table: str, entries: Any) -> dict[str, Any]:
    """Put the items of a table one by one, so that one that is refused keeps no other out."""
    refused = []
    count = 0
    for number, entry in enumerate(entries if isinstance(entries, list) else [entries], 1):
        try:
            backend.execute("PutItem", {"TableName": table, "Item": _item(entry)})
            count += 1
        except (ApiError, UsageError) as error:
            refused.append({"item": number, "error": str(error)})
    return {"table": table, "put": count, "refused": refused}


def _item(entry: Any) -> Any:
    request = entry.get("PutRequest") if isinstance(entry, dict) else None
    if not isinstance(request, dict) or "Item" not in request:
        raise UsageError('an item is written {"PutRequest": {"Item": {…}}}')
    return request["Item"]


# Access patterns


def _tried(backend: Backend, pattern: Any) -> dict[str, Any]:
    """One access pattern: `passed` is None if the file gives no command for it."""
    if not isinstance(pattern, dict):
        return {"passed": False, "error": f"a pattern is an object, not {shown(pattern)}"}
    about = {
        name: pattern[name]
        for name in ("pattern", "description", "dynamodb_operation")
        if name in pattern
    }
    implementation = pattern.get("implementation")
    if not implementation:
        return {**about, "passed": None, "reason": pattern.get("reason") or "it has no command"}
    try:
        command = action_of(str(implementation))
        measured = {"ReturnConsumedCapacity": "TOTAL", **command.request}
        response = backend.execute(command.action, measured)
    except (ApiError, UsageError) as error:
        return {**about, "passed": False, "error": str(error)}
    return {
        **about,
        "passed": True,
        "action": command.action,
        "units": units_of(response),
        **_answer(command, response),
        "notes": list(_notes(pattern, command, response)),
    }


def _answer(command: AwsCommand, response: Mapping[str, Any]) -> dict[str, Any]:
    if command.action not in _READS:
        return {}
    return {"items": _count_of(response), "first_items": _items_of(response)[:_SHOWN]}


def _count_of(response: Mapping[str, Any]) -> int:
    """The items of an answer; with `Select` COUNT it has none, and says how many there are."""
    return len(_items_of(response)) or response.get("Count", 0)


def _items_of(response: Mapping[str, Any]) -> list[Any]:
    """The items of any answer of a read."""
    if "Item" in response:
        return [response["Item"]]
    answers = response.get("Responses")
    if isinstance(answers, dict):
        return [item for items in answers.values() for item in items]
    if isinstance(answers, list):
        return [each["Item"] for each in answers if each.get("Item")]
    return list(response.get("Items", ()))


def _notes(
    pattern: Mapping[str, Any], command: AwsCommand, response: Mapping[str, Any]
) -> Iterator[str]:
    """What a pattern that works does not do as its file says, or does at a price."""
    said = pattern.get("dynamodb_operation")
    if said and _BATCHED.get(said, said) != command.action:
        yield f"the file says {said}, and its command is a {command.action}"
    for member, name in (("TableName", "table"), ("IndexName", "index")):
        said, used = pattern.get(name), command.request.get(member)
        if said and used and said != used:
            yield f"the file names {name} {said}, and its command {used}"
    if pattern.get("index") and command.action == "Query" and "IndexName" not in command.request:
        yield f"the file names index {pattern['index']}, and its command reads the table"
    if command.action == "Scan":
        yield "a Scan reads the whole table, whatever it returns"
    if command.action in _READS and not _count_of(response):
        yield "no sample item answers it, so it shows nothing"
    dropped = response.get("ScannedCount", 0) - response.get("Count", 0)
    if dropped > 0:
        yield f"its filter drops {dropped} of {response['ScannedCount']} items that are read and paid for"
