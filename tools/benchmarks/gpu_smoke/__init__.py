"""The first minutes on a machine with a GPU of NVIDIA: what must be seen to work there, in order, safe to stop."""
