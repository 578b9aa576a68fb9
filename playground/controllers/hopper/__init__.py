"""Keeps a one-legged hopper hopping: phases, gains, the seed's rule."""
