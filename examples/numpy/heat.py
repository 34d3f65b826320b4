# Solves the heat equation on a plate with a hot edge.
import numpy as np

n, alpha, tolerance = 50, 0.24, 1e-3
u = np.zeros((n, n))
u[0] = 100
u[:, 0] = 50
source = np.zeros((n - 2, n - 2))
source[20:25, 20:25] = 0.5

for step in range(1, 5001):
    middle = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    change = alpha * (around - 4 * middle) + source
    u[1:-1, 1:-1] += change
    if step % 100 == 0 and np.max(np.abs(change)) < tolerance:
        break

print("steps", step)
print("mean temperature", u.mean())
print("along the diagonal", np.diagonal(u)[::7])
print("the source", u[22:24, 22:24])
