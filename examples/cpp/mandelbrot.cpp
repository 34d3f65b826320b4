// Draws the Mandelbrot set as text.
#include <duet/duet.hpp>
#include <iostream>
using namespace duet;

int main()
{
    const int h = 24, w = 72, limit = 60;
    const matrix y = matrix::linspace(f64, -1.2, 1.2, h)(all, newaxis);
    const matrix c = complex(matrix::linspace(f64, -2.2, 0.8, w), y);

    matrix z(c128, h, w), count(i32, h, w), inside;
    for (int step = 0; step < limit; step++) {
        inside = square(real(z)) + square(imag(z)) <= 4;
        z = where(inside, z * z + c, z);
        count += inside;
    }

    std::cout << "in the set " << sum(count == limit);
    std::cout << "mean count " << mean(cast(count, f64));
    const char *shade = " .:-=+*#%@";
    const auto counts = count.read<int>();
    for (int i = 0; i < h * w; i++) std::cout << shade[counts[i] * 9 / limit] << (i % w == w - 1 ? "\n" : "");
}
