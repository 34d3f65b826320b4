// peer_eigen.cpp - the five benchmarks in Eigen.
//
//     peer-eigen BENCH SIZE SEED FILE [quick]
//
// It writes the result of one call to FILE, as raw floats, and prints the time of a call in
// microseconds. Without arguments it prints Eigen's version.
#include <Eigen/Dense>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Row = Eigen::RowVectorXf;
using Index = Eigen::Index;

// ---- the input data, as in data.h ----

static uint32_t mix(uint32_t h)
{
    h = (h ^ h >> 16) * 0x21F0AAADu;
    h = (h ^ h >> 15) * 0x735A2D97u;
    return h ^ h >> 15;
}

static float noise(uint32_t stream, int64_t i)
{
    return float(mix(uint32_t(i) + mix(stream)) >> 8) * 0x1p-23f - 1;
}

static uint32_t seed;

// Returns tensor t as a matrix; `fan` has the meaning that bench.h defines.
static Matrix tensor(uint32_t t, Index rows, Index cols, int fan = 0)
{
    Matrix m(rows, cols);
    const float scale = fan ? float(std::sqrt(3.0 / fan)) : 1;
#pragma omp parallel for
    for (Index i = 0; i < m.size(); i++) m.data()[i] = noise(seed * 64 + t, i) * scale;
    return m;
}

// ---- the benchmarks: a function to call, and its result ----

struct Case {
    std::function<void()> call;
    const Matrix *result;
};

static Case saxpy(Index n)
{
    auto x = new Matrix(tensor(0, 1, n)), y = new Matrix(tensor(1, 1, n));
    return { [=] { *y += 3.3f * *x; }, y };
}

static Case sgemm(Index n)
{
    auto a = new Matrix(tensor(0, n, n)), b = new Matrix(tensor(1, n, n)), c = new Matrix(n, n);
    return { [=] { c->noalias() = *a * *b; }, c };
}

static Case complex_expression(Index n)
{
    auto x = new Matrix(tensor(0, n, n)), y = new Matrix(tensor(1, n, n)), c = new Matrix(n, n);
    return { [=] { c->noalias() = (*x * (*x * 1.2f + *y)) * (-1.2f * *y - *x); }, c };
}

static void sigmoid_layer(const Matrix &x, const Matrix &w, const Row &b, Matrix &y)
{
    y.noalias() = x * w;
    y = (1 + (-(y.rowwise() + b).array()).exp()).inverse();
}

struct Dense {
    Matrix in, w1, w2, w3, o1, o2, o3;
    Row b1, b2, b3;
};

static Case dense(Index n)
{
    auto d = new Dense{ tensor(0, n, 784),
                        tensor(1, 784, 1000, 784),
                        tensor(4, 1000, 1000, 1000),
                        tensor(7, 1000, 10, 1000),
                        Matrix(n, 1000),
                        Matrix(n, 1000),
                        Matrix(n, 10),
                        tensor(2, 1, 1000, 784),
                        tensor(5, 1, 1000, 1000),
                        tensor(8, 1, 10, 1000) };
    return { [=] {
                sigmoid_layer(d->in, d->w1, d->b1, d->o1);
                sigmoid_layer(d->o1, d->w2, d->b2, d->o2);
                sigmoid_layer(d->o2, d->w3, d->b3, d->o3);
            },
             &d->o3 };
}

// Copies the 3x3 neighbourhoods of c images of side s, with zero padding, to 9 c rows and s^2 columns.
static void neighbourhoods(const float *x, Index c, Index s, Matrix &columns)
{
    columns.setZero(9 * c, s * s);
    for (Index k = 0; k < c; k++)
        for (Index q = 0; q < 9; q++) {
            const Index u = q / 3 - 1, v = q % 3 - 1, from = std::max<Index>(0, -v), to = std::min(s, s - v);
            for (Index i = std::max<Index>(0, -u); i < std::min(s, s - u); i++)
                std::copy(x + (k * s + i + u) * s + from + v, x + (k * s + i + u) * s + to + v,
                          &columns(9 * k + q, i * s + from));
        }
}

// Computes convolution, bias, relu and 2x2 max pooling of one image and stores the result in y.
static void conv_block(const float *x, Index c, Index s, const Matrix &k, const Row &b, Matrix &columns,
                       Matrix &all, float *y)
{
    neighbourhoods(x, c, s, columns);
    all.noalias() = k * columns;
    const Index h = s / 2;
    for (Index f = 0; f < k.rows(); f++)
        for (Index i = 0; i < h; i++)
            for (Index j = 0; j < h; j++) {
                const float *p = &all(f, 2 * i * s + 2 * j);
                *y++ = std::max(std::max(std::max(p[0], p[1]), std::max(p[s], p[s + 1])) + b(f), 0.0f);
            }
}

struct Cnn {
    Matrix in, k1, k2, w3, w4, p2, o3, o4;
    Row b1, b2, b3, b4;
};

static void cnn_forward(Cnn &c)
{
#pragma omp parallel
    {
        Matrix columns, all, p1(16, 256);
#pragma omp for
        for (Index i = 0; i < c.in.rows(); i++) {
            conv_block(&c.in(i, 0), 3, 32, c.k1, c.b1, columns, all, p1.data());
            conv_block(p1.data(), 16, 16, c.k2, c.b2, columns, all, &c.p2(i, 0));
        }
    }
    c.o3.noalias() = c.p2 * c.w3;
    c.o3 = (c.o3.rowwise() + c.b3).cwiseMax(0);
    c.o4.noalias() = c.o3 * c.w4;
    c.o4.rowwise() += c.b4;
    c.o4.colwise() -= Eigen::VectorXf(c.o4.rowwise().maxCoeff());
    c.o4 = c.o4.array().exp();
    c.o4.array().colwise() /= Eigen::ArrayXf(c.o4.rowwise().sum().array());
}

static Case cnn(Index n)
{
    auto c = new Cnn{ tensor(0, n, 3072),
                      tensor(1, 16, 27, 27),
                      tensor(4, 32, 144, 144),
                      tensor(7, 2048, 1000, 2048),
                      tensor(10, 1000, 10, 1000),
                      Matrix(n, 2048),
                      Matrix(n, 1000),
                      Matrix(n, 10),
                      tensor(2, 1, 16, 27),
                      tensor(5, 1, 32, 144),
                      tensor(8, 1, 1000, 2048),
                      tensor(11, 1, 10, 1000) };
    return { [=] { cnn_forward(*c); }, &c->o4 };
}

// ---- time of a call, as measure.c takes it ----

static double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double block(const Case &c, int64_t calls)
{
    const double start = now();
    for (int64_t i = 0; i < calls; i++) c.call();
    return now() - start;
}

static double microseconds(const Case &c, bool quick)
{
    const double warm = quick ? 0.01 : 0.06, target = quick ? 0.005 : 0.02, start = now();
    int64_t calls = 1;
    double took;
    while ((took = block(c, calls)) < target / 2 || now() - start < warm) calls *= took < target / 2 ? 2 : 1;
    calls = int64_t(std::ceil(double(calls) * target / took));
    std::vector<double> us;
    for (int round = 0; round < (quick ? 5 : 9); round++) us.push_back(1e6 * block(c, calls) / double(calls));
    std::nth_element(us.begin(), us.begin() + us.size() / 2, us.end());
    return us[us.size() / 2];
}

static bool save(const Matrix &m, const char *path)
{
    std::FILE *out = std::fopen(path, "wb");
    if (!out) {
        std::perror(path);
        return false;
    }
    const bool ok = std::fwrite(m.data(), sizeof(float), size_t(m.size()), out) == size_t(m.size());
    return std::fclose(out) == 0 && ok;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        std::printf("%d.%d.%d\n", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
        return argc > 1;
    }
    const struct {
        const char *name;
        Case (*make)(Index n);
    } cases[] = { { "saxpy", saxpy },
                  { "sgemm", sgemm },
                  { "complex", complex_expression },
                  { "dense", dense },
                  { "cnn", cnn } };
    seed = uint32_t(std::strtoul(argv[3], nullptr, 0));
    for (const auto &row : cases) {
        if (std::string(row.name) != argv[1]) continue;
        const Case c = row.make(std::atoll(argv[2]));
        c.call();
        if (!save(*c.result, argv[4])) return 1;
        std::printf("%.9g\n", microseconds(c, argc > 5 && std::string(argv[5]) == "quick"));
        return 0;
    }
    return 1;
}
