"""The ``dsp`` command. ``main`` starts it, ``app`` puts the commands together."""
