"""How fast a transport is on this machine: two processes, the same loads for every transport."""
