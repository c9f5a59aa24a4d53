"""Infers the model of an existing table from its items: `infer`; or drafts one from its definition: `draft`."""

from __future__ import annotations

from isotone.inference.drafting import draft
from isotone.inference.inferring import DEFAULT_SAMPLE, Inferred, InferredEntity, Note, infer
from isotone.inference.sampling import OWN_MARKS, existing_table, is_own

__all__ = [
    "DEFAULT_SAMPLE",
    "OWN_MARKS",
    "Inferred",
    "InferredEntity",
    "Note",
    "draft",
    "existing_table",
    "infer",
    "is_own",
]
