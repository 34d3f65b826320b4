# Draws the Mandelbrot set as text.
import numpy as np

h, w, limit = 24, 72, 60
y = np.linspace(-1.2, 1.2, h)[:, None]
x = np.linspace(-2.2, 0.8, w)
c = x + 1j * y

z = np.zeros_like(c)
count = np.zeros((h, w), dtype=np.int32)
for step in range(limit):
    inside = z.real**2 + z.imag**2 <= 4
    z = np.where(inside, z * z + c, z)
    count += inside

print("in the set", np.count_nonzero(count == limit))
print("mean count", count.mean())
shade = " .:-=+*#%@"
for line in count * (len(shade) - 1) // limit:
    print("".join(shade[s] for s in line))
