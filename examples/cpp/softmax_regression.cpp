// Trains a linear classifier by gradient descent on the cross-entropy.
#include <duet/duet.hpp>
#include <iostream>
using namespace duet;

int main()
{
    const int n = 300, features = 5, classes = 3;
    const double rate = 0.5;
    const matrix f = matrix::arange(f64, 0, features), k = matrix::arange(f64, 0, classes);
    const matrix x = sin(outer(matrix::arange(f64, 1, n + 1), f + 1.3));
    const matrix label = argmax(matmul(x, cos(outer(f, k + 1.7))), 1);
    const matrix target = one_hot(label, classes, f64);

    matrix w(f64, features, classes), b(f64, classes), p, g;
    for (int step = 0; step < 100; step++) {
        p = softmax(matmul(x, w) + b);
        g = (p - target) / n;
        w -= rate * matmul(x.T(), g);
        b -= rate * sum(g, 0);
        if (step % 25 == 0) std::cout << "step " << step << " loss " << -mean(sum(target * log(p), 1));
    }

    const expr right = argmax(matmul(x, w) + b, 1) == label;
    std::cout << "accuracy " << mean(cast(right, f64));
    std::cout << "weights " << w;
    std::cout << "bias " << b;
}
