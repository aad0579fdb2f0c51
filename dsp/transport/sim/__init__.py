"""A simulated network (`sim://`), and an event loop whose time is virtual."""
