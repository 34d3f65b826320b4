// Solves the heat equation on a plate with a hot edge.
#include <duet/duet.hpp>
#include <iostream>
using namespace duet;

int main()
{
    const int n = 50;
    const double alpha = 0.24, tolerance = 1e-3;
    matrix u(f64, n, n), source(f64, n - 2, n - 2), change;
    u.row(0) = 100;
    u.column(0) = 50;
    source.submatrix(20, 20, 5, 5) = 0.5;

    const auto before = range(0, -2), here = range(1, -1), after = range(2, none);
    matrix middle = u.indexed(here, here);
    int step = 0;
    do {
        const expr around = u(before, here) + u(after, here) + u(here, before) + u(here, after);
        change = alpha * (around - 4 * middle) + source;
        middle += change;
    } while (++step < 5000 && (step % 100 != 0 || item(max(abs(change))) >= tolerance));

    std::cout << "steps " << step << "\nmean temperature " << mean(u);
    std::cout << "along the diagonal " << diagonal_of(u)(range(none, none, 7));
    std::cout << "the source " << u(range(22, 24), range(22, 24));
}
