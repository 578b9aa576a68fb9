"""Names of the engines, and the two periods. Loads fast."""

from playground.errors import PlaygroundError, unknown

ENGINES = ("auto", "native", "mjx", "warp")


def check_engine(engine: str) -> None:
    """Checks an engine's name.

    Raises:
      PlaygroundError: there is no such engine.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)


def substeps_of(control_period: float, sim_dt: float) -> int:
    """Returns the whole number of physics steps in a control step.

    Args:
      control_period: s.
      sim_dt: s.

    Raises:
      PlaygroundError: the one is no multiple of the other.
    """
    if sim_dt <= 0 or control_period <= 0:
        raise PlaygroundError(
            f"periods must be above 0: control {control_period} s, physics {sim_dt} s"
        )
    substeps = max(1, round(control_period / sim_dt))
    if abs(substeps * sim_dt - control_period) > 1e-9:
        raise PlaygroundError(
            f"control period {control_period} s is no whole multiple of the physics "
            f"period {sim_dt} s; nearest: sim_dt {control_period / substeps:.6g} s"
        )
    return substeps
