"""Playground: batched training and evaluation of small legged robots on JAX and MuJoCo.

The rooms, each readable on its own, in the order in which they may import each other:

    robots -> physics -> controllers -> tasks -> learning, policy -> experiments,
    interface -> cli
"""

from playground.quiet import hush_missing_warp

__version__ = "0.1.0"

hush_missing_warp()
