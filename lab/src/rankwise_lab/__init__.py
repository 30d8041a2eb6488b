"""The laboratory of rankwise: the paper's experiments, benchmarks and the demonstration."""
