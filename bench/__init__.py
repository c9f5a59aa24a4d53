"""The measurements of docs/performance.md: `python -m bench`."""
