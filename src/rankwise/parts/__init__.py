"""Samples that lie in several parts, on several machines or in several processes, ranked as one.

Nobody has all scores. What parts exchange is O(positives + buckets), however many negatives there are, and the result
is that of one machine: parts never approximate, they only say what they count.
"""
