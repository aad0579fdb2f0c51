"""Two bodies that compute: one lets go of the interpreter's lock meanwhile, the other does not."""
