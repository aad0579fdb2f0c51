"""The seam to the network: one interface, and the transports behind it."""
