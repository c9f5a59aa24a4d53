"""Rules on a request that need no table: what may be said together, and how often.

Each `check_<operation>(request)` raises the `ValidationException` of the first rule that is broken, in
the service's order. Whatever compares a request with an existing table is the action's own affair.
"""
