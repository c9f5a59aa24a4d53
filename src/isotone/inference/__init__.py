"""Infers the model of an existing table from its items: `infer`."""

from __future__ import annotations

from isotone.inference.inferring import DEFAULT_SAMPLE, Inferred, InferredEntity, Note, infer
from isotone.inference.sampling import existing_table, is_own

__all__ = [
    "DEFAULT_SAMPLE",
    "Inferred",
    "InferredEntity",
    "Note",
    "existing_table",
    "infer",
    "is_own",
]
