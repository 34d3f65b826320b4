# Clusters points in the plane around three centers.
import numpy as np

n, k = 300, 3
i = np.arange(n)
group = i % k
radius = 0.5 + 0.4 * np.sin(1.7 * i)
x = np.stack([3 * group + radius * np.cos(2.1 * i), group**2 + radius * np.sin(2.1 * i)], axis=1)

center = x[:k] + 0.7
for step in range(10):
    distance = np.sum((x[:, None, :] - center) ** 2, axis=2)
    label = np.argmin(distance, axis=1)
    member = (label[:, None] == np.arange(k)).astype(float)
    size = member.sum(axis=0)
    moved = member.T @ x / size[:, None]
    shift = np.max(np.abs(moved - center))
    center = moved
    if shift < 1e-6:
        break

print("steps", step + 1)
print("sizes", size)
print("centers", center)
print("mean distance", np.mean(np.sqrt(np.min(distance, axis=1))))
