"""The papers' graphs: the maritime job (000, figure 2.3), diamond and star (002, figure 1)."""
