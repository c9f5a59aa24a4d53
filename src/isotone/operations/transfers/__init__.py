"""Exports, imports and bulk operations: their actions, and the jobs that read and write the files of a bucket."""
