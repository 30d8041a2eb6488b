"""Queries whose samples are spread over several parts: partitions of a Dask cluster.

No part has all scores. Parts exchange O(positives + buckets) numbers, independent of the number of negatives. The
result is that of one machine: nothing is approximated, because parts exchange exact counts.
"""
