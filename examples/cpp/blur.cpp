// Blurs an image with a box filter, and sharpens it.
#include <duet/duet.hpp>
#include <iostream>
using namespace duet;

int main()
{
    const int h = 48, w = 64, r = 2, size = 2 * r + 1;
    const matrix row = matrix::arange(f64, 0, h)(all, newaxis), column = matrix::arange(f64, 0, w);
    matrix image = 128 + 100 * sin(row / 5) * cos(column / 7);
    image = where(square(row - 20) + square(column - 30) < 100, 255, image);

    const pool_options box = { { size, size }, { 1, 1 }, { r, r } };
    const matrix blurred = avg_pool2d(image.reshape(1, 1, h, w), box).reshape(h, w);

    const matrix sharp = clip(image + 1.5 * (image - blurred), 0, 255);
    const matrix change = abs(image - blurred);
    const int where = item<int>(argmax(change));

    std::cout << "mean before and after " << mean(image) << mean(blurred);
    std::cout << "largest change " << max(change);
    std::cout << "where " << where / w << ' ' << where % w << '\n';
    std::cout << "corner " << blurred(range(0, 3), range(0, 3));
    std::cout << "clipped to white " << sum(sharp == 255);
}
