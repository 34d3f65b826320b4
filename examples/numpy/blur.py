# Blurs an image with a box filter, and sharpens it.
import numpy as np

h, w, r = 48, 64, 2
size = 2 * r + 1
row, column = np.arange(h)[:, None], np.arange(w)
image = 128 + 100 * np.sin(row / 5) * np.cos(column / 7)
image = np.where((row - 20) ** 2 + (column - 30) ** 2 < 100, 255.0, image)

padded = np.pad(image, r)
windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size))
blurred = windows.mean(axis=(2, 3))

sharp = np.clip(image + 1.5 * (image - blurred), 0, 255)
change = np.abs(image - blurred)

print("mean before and after", image.mean(), blurred.mean())
print("largest change", change.max())
print("where", np.unravel_index(change.argmax(), change.shape))
print("corner", blurred[:3, :3])
print("clipped to white", np.count_nonzero(sharp == 255))
