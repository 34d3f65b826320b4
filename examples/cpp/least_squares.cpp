// Fits a cubic to points, by QR and by the normal equations.
#include <duet/duet.hpp>
#include <iostream>
using namespace duet;

int main()
{
    const int n = 200, degree = 3;
    const matrix x = matrix::linspace(f64, -1, 1, n);
    const matrix y = 1 + 2 * x - 3 * pow_int(x, 3) + 0.1 * sin(37 * x);

    const matrix A = pow(x(all, newaxis), matrix::arange(f64, 0, degree + 1));
    const matrix c = lstsq(A, y), fit = matmul(A, c);
    const double r2 = 1 - item(var(y - fit)) / item(var(y));

    const matrix normal = solve(matmul(A.T(), A), matmul(A.T(), y));
    const double apart = item(max(abs(c - normal)));

    std::cout << "coefficients " << c;
    std::cout << "r squared " << r2 << '\n';
    std::cout << "largest residual " << max(abs(y - fit));
    std::cout << "the normal equations agree: " << (apart < 1e-9) << '\n';
}
