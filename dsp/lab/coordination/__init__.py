"""``dsp lab coordination``: scaling at once, and under mutual exclusion."""
