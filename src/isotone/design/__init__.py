"""Designs tables before they exist: sample data, the sheet of access patterns, and plans that change live tables."""

from __future__ import annotations

from isotone.design.applying import AppliedPlan, apply
from isotone.design.diagram import DesignDiagram, diagram_of
from isotone.design.plan import DesignPlan, PlanStep, plan_of
from isotone.design.sample_plan import UNTIL, SampleData, SampleRequest, Several
from isotone.design.seeding import Seeded, SeedProgress, seed, write_sample
from isotone.design.sheet import PatternSheet, SheetPlace, SheetRow, sheet_of
from isotone.design.sheet_request import SheetRequest

__all__ = [
    "UNTIL",
    "AppliedPlan",
    "DesignDiagram",
    "DesignPlan",
    "PatternSheet",
    "PlanStep",
    "SampleData",
    "SampleRequest",
    "SeedProgress",
    "Seeded",
    "Several",
    "SheetPlace",
    "SheetRequest",
    "SheetRow",
    "apply",
    "diagram_of",
    "plan_of",
    "seed",
    "sheet_of",
    "write_sample",
]
