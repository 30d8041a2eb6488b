"""Compiled code, private: Algorithm 1, the engine of buckets, soft counts, and the published methods."""
