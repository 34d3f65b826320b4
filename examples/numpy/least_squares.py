# Fits a cubic to points, by QR and by the normal equations.
import numpy as np

n, degree = 200, 3
x = np.linspace(-1, 1, n)
y = 1 + 2 * x - 3 * x**3 + 0.1 * np.sin(37 * x)

A = x[:, None] ** np.arange(degree + 1)
c = np.linalg.lstsq(A, y, rcond=None)[0]
fit = A @ c
r2 = 1 - np.var(y - fit) / np.var(y)

normal = np.linalg.solve(A.T @ A, A.T @ y)
apart = np.max(np.abs(c - normal))

print("coefficients", c)
print("r squared", r2)
print("largest residual", np.max(np.abs(y - fit)))
print("the normal equations agree:", int(apart < 1e-9))
