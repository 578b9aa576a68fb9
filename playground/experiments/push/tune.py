"""Evolves the gains of a balance strategy: every candidate is pushed from all sides.

A candidate's score is the mean over directions of how far up a ladder of impulses it
stands, plus a weight times that of its worst direction, in N·s. A rung counts in full
while every rung below it was withstood, and a quarter above a hole, so that holes cost.
"""

import dataclasses
import math

import numpy as np

from playground.controllers.balance.gains import BalanceGains, switches, tunable
from playground.experiments.push.cases import Cases, Outcomes
from playground.experiments.push.trials import PushTrials, stack_gains
