"""Fuzzers: random changes of inputs that are known to be interesting, for as long as they are told.

    python -m tests.attack.fuzz http --seconds 600 --seed 7
    python -m tests.attack.fuzz all --seconds 300

Each target takes bytes, and fails only by an exception that is not an answer. What it fails with is made shorter and
printed. Inputs that reached new lines of Isotone are kept in `corpus/TARGET`, and tried again by `make test`.
"""
