"""Nodes that greet each other, over whatever transport a URL chooses."""
