"""The paper's experiments, from data to a report: modules for each experiment, and a shared page."""
