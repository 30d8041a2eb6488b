"""What measuring takes: scores to time on, the calls that are timed, fair rounds of them, and the machine."""
