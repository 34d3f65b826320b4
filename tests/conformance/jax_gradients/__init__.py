"""The parts of gradients_jax.py."""
