"""Group mutual exclusion: one of two groups at a time, any number of its members at once."""
