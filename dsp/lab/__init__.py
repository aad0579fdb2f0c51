"""Experiments and measurements: tables, JSON and plots made by the code that also runs for real."""
