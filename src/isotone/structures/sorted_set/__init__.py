"""Sorted sets: members and how they are stored, changed and read; `sorted_set` is what users see."""
