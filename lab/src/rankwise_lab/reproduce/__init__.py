"""The paper's experiments, from data to a report: one module an experiment, and the page they share."""
