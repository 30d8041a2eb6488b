"""Benchmarks: speed and quality against other methods, each number beside its target."""
