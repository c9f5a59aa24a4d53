"""The measurements of docs/design/measurements.md: `python -m bench`."""
