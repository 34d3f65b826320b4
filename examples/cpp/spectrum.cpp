// Finds the tones in a signal: windowed power spectrum, averaged over segments.
#include <duet/duet.hpp>
#include <iostream>
using namespace duet;

int main()
{
    const int rate = 8000, n = 16384, segment = 1024;
    const matrix t = matrix::arange(f64, 0, n) / rate;
    const matrix signal = sin(2 * pi * 440 * t) + 0.5 * sin(2 * pi * 1250 * t) + 0.2 * cos(2.5e6 * t * t);

    const matrix window = 0.5 - 0.5 * cos(2 * pi * matrix::arange(f64, 0, segment) / segment);
    const matrix cut = signal.reshape(-1, segment), parts = (cut - mean_keep(cut, 1)) * window;

    const matrix spectrum = rfft(parts, segment, 1);
    const matrix power = mean(square(abs(spectrum)), 0) / sum(square(window));
    const matrix decibel = 10 * log10(power);
    const double noise = item(sort(decibel, 0)(decibel.count() / 2));

    const auto before = range(0, -2), in = range(1, -1), after = range(2, none);
    const expr peak = (power(in) > power(before)) & (power(in) > power(after)) & (decibel(in) > noise + 15);
    const matrix bins = nonzero(peak)(all, 0) + 1;

    std::cout << "noise in dB " << noise << "\nfrequencies " << cast(bins, f64) * rate / segment;
    std::cout << "their power in dB " << take(decibel, bins, 0);
}
