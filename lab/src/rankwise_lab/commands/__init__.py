"""Commands that join `rankwise`: demo, bench, reproduce."""
