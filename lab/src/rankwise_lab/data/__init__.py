"""Data sets: where they are looked for, and readers of those that only experiments use."""
