"""Functions of one robot that are told how many robots they are vmapped over."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap


def told_batch_size(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function(robots, *args)` as a function of `args`, to be vmapped.

    Args:
      function: Of one robot; `robots` is the size of the whole batch, over all vmaps,
        an int known while tracing. For buffers that the robots of a batch share.
    """

    @functools.cache
    def over(batch: tuple[int, ...]) -> Callable[..., Any]:
        robots, depth = math.prod(batch), len(batch)

        @custom_vmap
        def call(*args):
            flat = jax.tree.map(lambda x: x.reshape(robots, *x.shape[depth:]), args)
            out = jax.vmap(functools.partial(function, robots))(*flat)
            return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), out)

        @call.def_vmap
        def one_more_vmap(size, batched, *args):
            args = jax.tree.map(
                lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape)),
                args,
                tuple(batched),
            )
            out = over((size, *batch))(*args)
            return out, jax.tree.map(lambda _: True, out)

        return call

    return over(())
