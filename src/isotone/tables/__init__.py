"""Whole tables, as raw requests to any backend: descriptions, scans, samples, batches, and resumable jobs.

Everything that reads or writes a whole table uses this layer: the model's walks, copies and exports, inference, the
advisor, the workbench and the command line. It knows no entities.
"""
