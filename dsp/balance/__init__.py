"""Load balancing: sketches of what records cost, OSG of paper 002, and what is better than it."""
