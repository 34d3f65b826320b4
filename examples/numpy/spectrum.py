# Finds the tones in a signal: windowed power spectrum, averaged over segments.
import numpy as np

rate, n, segment = 8000, 16384, 1024
t = np.arange(n) / rate
signal = np.sin(2 * np.pi * 440 * t) + 0.5 * np.sin(2 * np.pi * 1250 * t) + 0.2 * np.cos(2.5e6 * t * t)

window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(segment) / segment)
parts = signal.reshape(-1, segment)
parts = (parts - parts.mean(axis=1, keepdims=True)) * window

spectrum = np.fft.rfft(parts, axis=1)
power = np.mean(np.abs(spectrum) ** 2, axis=0) / np.sum(window**2)
decibel = 10 * np.log10(power)
noise = np.sort(decibel)[len(decibel) // 2]

peak = (power[1:-1] > power[:-2]) & (power[1:-1] > power[2:]) & (decibel[1:-1] > noise + 15)
bins = np.nonzero(peak)[0] + 1

print("noise in dB", noise)
print("frequencies", bins * (rate / segment))
print("their power in dB", decibel[bins])
