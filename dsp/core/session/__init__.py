"""Reliable sessions: what makes any transport a pair of FIFO channels that lose nothing."""
