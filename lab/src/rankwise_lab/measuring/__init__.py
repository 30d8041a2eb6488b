"""Measuring: scores to time on, the timed calls, fair rounds of them, and the machine."""
