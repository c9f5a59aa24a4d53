"""The model of a table that is already there, inferred from its items: `infer`."""

from __future__ import annotations

from isotone.inference.inferring import Inferred, InferredEntity, Note, infer

__all__ = ["Inferred", "InferredEntity", "Note", "infer"]
