"""Scaling without a coordinator: the protocol, and the rules by which instances decide."""
