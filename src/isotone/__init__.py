"""Isotone: DynamoDB inside your Python process, and keys that cannot sort wrongly."""

__version__ = "0.1.0"
