"""The engine for large queries: Algorithm 1 over buckets of scores instead of scores, in two passes over the data.

1. a pass puts every score into one of many narrow buckets and counts them (maps.py, choosing.py, passes.py);
2. each positive's place among the negatives is narrowed down to one bucket (places.py);
3. a pass writes the gradient of every bucket in which no positive has its place, and gathers the others' members;
4. those are sorted (regions.py), or get buckets of their own (large.py).

Scores are numbers, so this passes the paper's lower bound for comparison-based methods; where buckets separate badly
again and again the work falls back on Algorithm 1 and its guarantee. The steps work on parts of a query, so that
large.py can share them among threads, and `rankwise.dask` among machines (narrowing.py); whatever is added up is
added up per block of a fixed size, or in integers, so that the number of threads changes nothing.
"""
