"""``grpc://`` and ``grpcs://``: frames over gRPC, one long-lived stream per peer and lane."""
