"""Pushes a standing robot from all sides and finds what its controllers withstand."""
