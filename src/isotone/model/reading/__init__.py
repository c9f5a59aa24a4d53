"""Turns a query into requests, and their responses into entities in order."""
