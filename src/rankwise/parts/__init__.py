"""Ranking of samples that are spread over several parts, on several machines or in several processes.

No part has all scores. Parts exchange O(positives + buckets) numbers, independent of the number of negatives. The
result is that of one machine: nothing is approximated, because parts exchange exact counts.
"""
