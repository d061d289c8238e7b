"""Coverage-guided fuzzing of the decoders that read bytes from outside: `python -m tests.fuzz`."""
