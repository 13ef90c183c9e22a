"""Model providers: each turns a neutral request into one wire protocol, and its stream back into neutral deltas."""
