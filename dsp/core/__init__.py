"""Types, the machine contract, seeded randomness, the envelope, and the driver of machines."""
