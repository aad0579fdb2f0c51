"""Nodes that exchange words, count them and tell each other the totals, over any transport."""
