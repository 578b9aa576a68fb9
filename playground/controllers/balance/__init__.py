"""Keeps a standing biped from falling: criteria, strategies, stepping."""
