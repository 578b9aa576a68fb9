"""The policy file: what it promises, how it is written, proved and run."""
