"""The experiments of paper 000 chapter 5: occupancy, traffic and latency of mutual exclusion."""
