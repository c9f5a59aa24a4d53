"""Infers the model of a table from its items: `infer`; drafts one from its definition: `draft`; or begins one: `begin`."""

from __future__ import annotations

from isotone.inference.drafting import draft
from isotone.inference.inferring import DEFAULT_SAMPLE, Inferred, InferredEntity, Note, infer
from isotone.inference.pattern_design import BegunModule, PatternAnswer, begin
from isotone.inference.pattern_file import PatternFile, read_patterns
from isotone.inference.sampling import OWN_MARKS, existing_table, is_own

__all__ = [
    "DEFAULT_SAMPLE",
    "OWN_MARKS",
    "BegunModule",
    "Inferred",
    "InferredEntity",
    "Note",
    "PatternAnswer",
    "PatternFile",
    "begin",
    "draft",
    "existing_table",
    "infer",
    "is_own",
    "read_patterns",
]
