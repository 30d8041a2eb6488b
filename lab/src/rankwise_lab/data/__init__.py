"""Data sets: where they are searched for, and readers of those that only experiments use."""
