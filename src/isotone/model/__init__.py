"""The modelling library: entities, keys whose order is that of their values, and access patterns.

A program declares `Table`, `Entity`, `Key` and `Index`; it never formats a key. The library makes
requests and reads responses (`steps`), and runs on whatever answers the DynamoDB API.
"""
