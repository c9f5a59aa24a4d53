"""Whole tables, as raw requests to any backend: descriptions, scans, samples, batches of writes, and jobs that continue.

What reads or writes a whole table stands on this layer: the model's walks, copies and exports, inference, the advisor, the
workbench and the command line. It knows no entities.
"""
