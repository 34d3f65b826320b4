// Statistics of the columns of a table, with missing values.
#include <duet/duet.hpp>
#include <iostream>
using namespace duet;

int main()
{
    const int rows = 1000, columns = 4;
    const matrix i = matrix::arange(f64, 0, rows * columns).reshape(rows, columns);
    matrix table = sin(i * 0.37) * matrix{ 1.0, 2.0, 5.0, 10.0 } + matrix{ 0.0, 100.0, -5.0, 7.0 };
    table.column(2) += 0.8 * table(all, 1);
    table.indexed(range(5, none, 50), 3) = NAN;

    const matrix valid = ~isnan(table);
    const matrix count = sum(valid, 0);
    const matrix mean = sum(where(valid, table, 0), 0) / cast(count, f64);
    const matrix filled = where(valid, table, mean);
    const matrix deviation = sqrt(sum(square(filled - mean), 0) / cast(count - 1, f64));
    const matrix median = sort(filled, 0)(rows / 2);

    const matrix z = (filled - mean) / deviation;
    const matrix correlation = matmul(z.T(), z) / (rows - 1);

    std::cout << "count " << count;
    std::cout << "mean " << mean;
    std::cout << "deviation " << deviation;
    std::cout << "median " << median;
    std::cout << "range " << min(filled, 0) << max(filled, 0);
    std::cout << "correlation " << correlation;
    std::cout << "outliers " << sum(abs(z) > 1.4);
}
