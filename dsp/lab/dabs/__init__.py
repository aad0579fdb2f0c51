"""The experiments of paper 002 (section 7): scaling and balancing, apart and together."""
