"""Sets JAX up once, before its backend starts: device, precision, compile cache."""

import importlib.metadata
import os
from pathlib import Path

import jax

from playground.errors import PlaygroundError, unknown

DEVICES = ("auto", "cpu", "gpu")


def configure(device: str = "auto") -> str:
    """Chooses the device and returns a line that says what everything runs on.

    Args:
      device: "auto" takes a GPU where JAX finds one, "gpu" insists on it.

    Raises:
      PlaygroundError: no such device, or there is none.
    """
    if device not in DEVICES:
        raise unknown("device", device, DEVICES)
    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    # Physics in reduced precision diverges; users who want it set JAX's own variable.
    if "JAX_DEFAULT_MATMUL_PRECISION" not in os.environ:
        jax.config.update("jax_default_matmul_precision", "highest")
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        jax.config.update(
            "jax_compilation_cache_dir", str(cache / "playground" / "jax")
        )
    # With asynchronous dispatch a host callback can wait for a computation that waits
    # for the callback (see physics/native.py).
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    if device == "gpu" and jax.default_backend() != "gpu":
        raise PlaygroundError(
            "no GPU: JAX runs on the CPU here; install 'playground[cuda]' or drop "
            "--device gpu"
        )
    return describe()


def describe() -> str:
    """Returns devices, precision and versions in one line."""
    names = ("jax", "mujoco", "brax")
    versions = " ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    found = jax.devices()
    precision = jax.config.values["jax_default_matmul_precision"] or "default"
    return f"{len(found)} x {found[0].device_kind} | {precision} precision | {versions}"
