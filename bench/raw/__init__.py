"""The libraries below the transports, without dsp: what the bench compares with."""
