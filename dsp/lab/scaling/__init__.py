"""The simulations of papers 000 (section 3.4) and 001 (section 5)."""
