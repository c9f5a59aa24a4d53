"""Turns class statements into schemas: fields, keys, tables, indexes, and how entities become items."""
