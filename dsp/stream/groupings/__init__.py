"""How the records of an edge are shared out: a class for each grouping, which the outlet asks."""
