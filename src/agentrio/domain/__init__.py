"""Values and pure functions: no Trio, no I/O, no clock, no randomness."""
