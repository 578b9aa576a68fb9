"""Thin commands: parse, make a frozen config, call one function."""
