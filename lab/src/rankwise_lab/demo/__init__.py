"""`rankwise demo`: a ranker beside a classifier on real images, and structured SVMs as in the paper."""
