"""Explains a refused request: which of its faults the service reports, by the order of checks of its action."""
