"""Designs tables before they exist: sample data, the sheet of access patterns, and plans that change live tables."""

from __future__ import annotations

from isotone.design.sample_plan import UNTIL, SampleData, SampleRequest, Several
from isotone.design.seeding import Seeded, SeedProgress, seed, write_sample

__all__ = [
    "UNTIL",
    "SampleData",
    "SampleRequest",
    "SeedProgress",
    "Seeded",
    "Several",
    "seed",
    "write_sample",
]
