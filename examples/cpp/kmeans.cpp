// Clusters points in the plane around three centers.
#include <duet/duet.hpp>
#include <iostream>
using namespace duet;

int main()
{
    const int n = 300, k = 3;
    const matrix i = matrix::arange(f64, 0, n), each = matrix::arange(i64, 0, k);
    const matrix group = i % k, radius = 0.5 + 0.4 * sin(1.7 * i);
    matrix x(f64, n, 2);
    x.column(0) = 3 * group + radius * cos(2.1 * i);
    x.column(1) = square(group) + radius * sin(2.1 * i);

    matrix center = x(range(0, k)) + 0.7, distance, size;
    int step = 0;
    for (double shift = 1; shift >= 1e-6 && step < 10; step++) {
        distance = sum(square(x(all, newaxis) - center), 2);
        const matrix label = argmin(distance, 1);
        const matrix member = cast(label(all, newaxis) == each, f64);
        size = sum(member, 0);
        matrix moved = matmul(member.T(), x) / size(all, newaxis);
        shift = item(max(abs(moved - center)));
        center = std::move(moved);
    }

    std::cout << "steps " << step << '\n';
    std::cout << "sizes " << size;
    std::cout << "centers " << center;
    std::cout << "mean distance " << mean(sqrt(min(distance, 1)));
}
