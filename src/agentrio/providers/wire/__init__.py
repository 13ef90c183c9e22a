"""The wire, without any I/O: bytes in, neutral values out, and back."""
