"""Warnings for edits without the model: what breaks when an entity's item is changed attribute by attribute."""

from __future__ import annotations

from typing import Any

from isotone.model import EntitySchema


def described(schema: EntitySchema) -> dict[str, Any]:
    """The consequences, as sentences, of changing each attribute, of any change, and of a deletion."""
    return {
        "attributes": _of_attributes(schema),
        "always": _of_any_change(schema),
        "deleted": [
            f"The reservation of {_quoted(field.attribute)} stays: no other {schema.tag} can have this value."
            for field in schema.unique
        ],
    }


def _of_attributes(schema: EntitySchema) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in schema.keys.values():
        made = [slot.attribute.name for slot in key.slots]
        where = f"index {key.index}" if key.index else "the table"
        sources = [field.attribute for field in key.fields if field.attribute not in made]
        for source in sources:
            found.setdefault(source, []).append(
                f"The key of {where} is made from it. {_listed(made)} {_keep(made)}, "
                f"so the item stays where its old value belongs."
            )
        for name in made if sources and key.index else ():
            found.setdefault(name, []).append(
                f"The model makes the key of {where} from {_listed(sources)}, which would contradict it."
            )
    for field in schema.unique:
        found.setdefault(field.attribute, []).append(
            f"It is unique: the old value stays reserved, and another {schema.tag} may take the new one."
        )
    return found


def _of_any_change(schema: EntitySchema) -> list[str]:
    by_role = {field.options.role: field.attribute for field in schema.fields.values()}
    consequences = []
    if "version" in by_role:
        consequences.append(
            f"{_quoted(by_role['version'])} is not raised: a program that read the item before overwrites your change."
        )
    if "updated" in by_role:
        consequences.append(f"{_quoted(by_role['updated'])} is not set.")
    if schema.computations:
        computed = [schema.fields[name].attribute for name in schema.computations]
        consequences.append(f"{_listed(computed)} {_is(computed)} not computed again.")
    return consequences


def _quoted(name: str) -> str:
    return f"“{name}”"


def _listed(names: list[str]) -> str:
    return " and ".join(map(_quoted, names))


def _keep(names: list[str]) -> str:
    return "keeps its value" if len(names) == 1 else "keep their values"


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
