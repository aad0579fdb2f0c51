"""Which instance gets a record: round-robin, OSG, adaptive and an omniscient scheduler compared."""
