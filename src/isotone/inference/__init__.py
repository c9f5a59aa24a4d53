"""The model of a table that is already there, inferred from its items: `infer`."""

from __future__ import annotations

from isotone.inference.inferring import DEFAULT_SAMPLE, Inferred, InferredEntity, Note, infer

__all__ = ["DEFAULT_SAMPLE", "Inferred", "InferredEntity", "Note", "infer"]
