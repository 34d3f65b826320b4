/* test_hpp.cpp - duet.hpp: every member and function, moves, errors with their lines, and that neither a
 * matrix nor a formula leaks. Built as C++17 and C++20, and without exceptions and RTTI. */
#include <array>
#include <cstdio>
#include <duet/dlpack.hpp>
#include <duet/duet.hpp>
#include <map>
#include <sstream>
#if __cplusplus >= 202002L
#include <span>
#endif
#include "tap.h"

using duet::matrix;

/* True if no formula of this thread is unevaluated: the limit cannot change otherwise. */
static bool no_formulas() { return duet_arena_limit(size_t(64) << 20) == DUET_OK; }

/* Is the place "this file:line" in the text? */
static bool names(const std::string &text, unsigned line)
{
    return text.find(std::string(__FILE__) + ":" + std::to_string(line)) != std::string::npos;
}

template <class T> static bool holds(const matrix &m, std::initializer_list<T> want)
{
    const auto e = m.read<T>();
    bool same = e.size() == want.size();
    std::size_t i = 0;
    for (const T &w : want) same = same && e[i++] == w;
    return same;
}

/* ---- what must not compile ---- */

static_assert(!std::is_copy_constructible_v<matrix>);
static_assert(std::is_nothrow_move_constructible_v<matrix> && std::is_nothrow_move_assignable_v<matrix>);
static_assert(!std::is_assignable_v<matrix &, matrix &> && !std::is_assignable_v<matrix &, const matrix &>);
static_assert(!std::is_assignable_v<matrix, matrix>, "x.row(0) = y.row(0) would do nothing");
static_assert(std::is_assignable_v<matrix, duet::expr> && std::is_assignable_v<matrix &, int>);
static_assert(!std::is_copy_constructible_v<duet::expr> && !std::is_copy_assignable_v<duet::expr>);
static_assert(!std::is_assignable_v<duet::expr, duet::expr>, "x(0) = y would do nothing");
static_assert(!std::is_convertible_v<duet::expr, bool> && !std::is_constructible_v<bool, matrix>);
static_assert(!std::is_convertible_v<float *, duet::expr> && !std::is_convertible_v<float *, duet::operand>);
static_assert(!std::is_convertible_v<duet::dtype, duet::operand>);
static_assert(duet::dtype_of<long>() == duet::i64 && duet::dtype_of<long long>() == duet::i64);

/* ---- matrices ---- */

static void test_constructors()
{
    matrix declared(duet::f64, duet::shape(2, 2));
    declared.declare(DUET_LOWER);
    CHECK(declared.structure() == DUET_LOWER && (declared + declared).structure() == DUET_LOWER,
          "structures");
    CHECK(matrix().empty() && matrix().get() == nullptr && matrix().count() == 0, "the empty matrix");
    const matrix a(duet::f32, 2, 3), b(duet::i16, duet::shape{ 4, 1 }), s(duet::f64);
    CHECK(a.type() == duet::f32 && a.rank() == 2 && a.size(0) == 2 && a.size(1) == 3 && a.count() == 6,
          "sizes");
    CHECK(a.stride(0) == 3 && a.shape() == duet::shape(2, 3) && a.shape() != duet::shape(3, 2), "shape");
    CHECK(b.type() == duet::i16 && b.shape() == duet::shape(4, 1) && s.rank() == 0, "a shape as an argument");
    CHECK(holds<double>(matrix::zeros(duet::f64, 2), { 0, 0 }), "zeros");
    CHECK(holds<float>(matrix::ones(duet::f32, 2, 1), { 1, 1 }), "ones");
    CHECK(holds<int>(matrix::full(duet::i32, 7, 3), { 7, 7, 7 }), "full");
    CHECK(holds<double>(matrix::eye(duet::f64, 2), { 1, 0, 0, 1 }), "eye");
    CHECK(holds<int64_t>(matrix::arange(duet::i64, 1, 4), { 1, 2, 3 }), "arange");
    CHECK(holds<double>(matrix::linspace(duet::f64, 0, 1, 3), { 0, 0.5, 1 }), "linspace");

    const matrix f = { 1.0f, 2.5f }, i{ 1, 2, 3 }, d = { { 1.0, 2.0 }, { 3.0, 4.0 } }, t = { true, false };
    CHECK(f.type() == duet::f32 && holds<float>(f, { 1, 2.5f }), "a list of float");
    CHECK(i.type() == duet::i32 && holds<int>(i, { 1, 2, 3 }), "a list of int");
    CHECK(d.shape() == duet::shape(2, 2) && holds<double>(d, { 1, 2, 3, 4 }), "a list of lists");
    CHECK(t.type() == duet::boolean && holds<bool>(t, { true, false }), "a list of bool");
    using complex = std::complex<float>;
    const matrix z = { complex(1, 2), complex(3, 4) };
    CHECK(z.type() == duet::c64 && holds<complex>(z, { complex(1, 2), complex(3, 4) }), "a list of complex");
    CHECK(holds<float>(matrix(duet::f32, { 1, 2 }), { 1, 2 }), "a list of int as f32");
    CHECK(holds<float>(matrix(duet::f32, { 1, 2.5 }), { 1, 2.5 }), "a mixed list as f32");
    CHECK(holds<int64_t>(matrix(duet::i64, { { 1, 2 }, { 3, 4 } }), { 1, 2, 3, 4 }), "lists of int as i64");
    CHECK(matrix(duet::f16, { 1, 2 }).read<duet::f16_bits>()[0] == duet::f16_bits(0x3c00), "f16");
    CHECK(matrix(duet::bf16, { 1, 2 }).read<duet::bf16_bits>()[0] == duet::bf16_bits(0x3f80), "bf16");

    const std::vector<double> v = { 1, 2, 3, 4, 5, 6 };
    const std::array<int8_t, 2> array = { 1, 2 };
    const unsigned short c[3] = { 7, 8, 9 };
    CHECK(holds<double>(matrix(v), { 1, 2, 3, 4, 5, 6 }), "a vector");
    CHECK(matrix(v, { 2, 3 }).shape() == duet::shape(2, 3), "a vector with a shape");
    CHECK(holds<int8_t>(matrix(array), { 1, 2 }) && holds<uint16_t>(matrix(c), { 7, 8, 9 }), "arrays");
    CHECK(matrix(std::vector<float>()).count() == 0, "an empty vector");
    CHECK(holds<double>(matrix(matrix(v).read<double>()), { 1, 2, 3, 4, 5, 6 }), "the elements of a matrix");
#if __cplusplus >= 202002L
    CHECK(holds<double>(matrix(std::span<const double>(v).subspan(4)), { 5, 6 }), "a span");
    const matrix of_v(v);
    const std::span<const double> back = of_v.read<double>();
    CHECK(back.size() == 6 && back[5] == 6, "a span of elements");
#endif
    float memory[] = { 1, 2, 3, 4 };
    matrix w = matrix::wrap(memory, { 2, 2 });
    w += 1;
    CHECK(w.read<float>().data() == memory && memory[3] == 5, "wrap");
    float columns[] = { 1, 2, 3, 4, 5, 6 }, line[] = { 1, 2, 3 };
    matrix by_columns = matrix::wrap_columns(columns, { 2, 3 });
    CHECK(holds<float>(by_columns, { 1, 3, 5, 2, 4, 6 }) && by_columns.stride(1) == 2, "wrap_columns");
    by_columns.row(1) = 9;
    CHECK(holds<float>(by_columns, { 1, 3, 5, 9, 9, 9 }) && columns[1] == 9, "wrap_columns is written");
    const matrix reversed = matrix::wrap_strided(line + 2, 3, -1);
    CHECK(holds<float>(reversed, { 3, 2, 1 }) && reversed.stride(0) == -1, "wrap_strided");
    CHECK(holds<float>(matrix::wrap_strided(line, { 2, 3 }, { 0, 1 }), { 1, 2, 3, 1, 2, 3 }),
          "a stride of 0");
    CHECK(holds<int>(matrix::magic(duet::i32, 3), { 8, 1, 6, 3, 5, 7, 4, 9, 2 }), "magic");
    CHECK(holds<double>(matrix::full(duet::f64, duet::sum(f), 2), { 3.5, 3.5 }), "full of a formula");
    CHECK(matrix::ones(duet::f32, duet::shape(2, 3)).shape() == duet::shape(2, 3), "a shape as an argument");
    const matrix from_formula = d + 1;
    CHECK(holds<double>(from_formula, { 2, 3, 4, 5 }), "a matrix from a formula");
    tap_point("constructors");
}

static void test_moves()
{
    matrix a = { 1.0f, 2.0f }, b(std::move(a)), c;
    CHECK(a.empty() && holds<float>(b, { 1, 2 }), "the move constructor"); // NOLINT: a is empty
    c = std::move(b);
    CHECK(b.empty() && holds<float>(c, { 1, 2 }), "move assignment"); // NOLINT
    matrix &same = c;
    c = std::move(same);
    CHECK(holds<float>(c, { 1, 2 }), "a matrix moved to itself keeps its elements");
    c.set(c);
    c = c + 0;
    CHECK(holds<float>(c, { 1, 2 }), "a matrix assigned to itself keeps its elements");
    swap(b, c);
    b.swap(c);
    swap(b, c);
    CHECK(c.empty() && holds<float>(b, { 1, 2 }), "swap");
    matrix d = b.clone();
    d += 1;
    CHECK(holds<float>(b, { 1, 2 }) && holds<float>(d, { 2, 3 }), "clone");
    d = matrix::ones(duet::f64, 3);
    CHECK(d.type() == duet::f64, "a new matrix replaces another one");
    duet_matrix *raw = b.release();
    CHECK(b.empty() && raw, "release");
    const matrix again(raw);
    std::vector<matrix> all;
    for (int i = 0; i < 9; i++) all.push_back(matrix::full(duet::i32, i, 1));
    all.erase(all.begin());
    CHECK(all.size() == 8 && holds<int>(all[0], { 1 }), "a vector of matrices");
    tap_point("moves");
}

static void test_assignment()
{
    const matrix x = { 1.0f, 2.0f };
    matrix y(duet::f32, 2), empty, late;
    y = 3 * x + y;
    CHECK(holds<float>(y, { 3, 6 }), "y = 3 x + y");
    const duet_matrix *before = y.get();
    y.set(x);
    CHECK(y.get() == before && holds<float>(y, { 1, 2 }), "set copies the elements");
    y = 7;
    CHECK(y.get() == before && holds<float>(y, { 7, 7 }), "a number");
    empty = x * 2;
    late.set(x);
    CHECK(holds<float>(empty, { 2, 4 }) && holds<float>(late, { 1, 2 }), "an empty matrix gets a new one");
    y += x;
    y -= 1;
    y *= x + 1;
    y /= 2.0;
    CHECK(holds<float>(y, { 7, 12 }), "+= -= *= /=");
    matrix m = { { 1.0f, 2.0f }, { 3.0f, 4.0f } };
    m.row(0) = x * 10;
    m.row(1) += 1;
    CHECK(holds<float>(m, { 10, 20, 4, 5 }), "views change the matrix");
    m.row(0) = m(1);
    CHECK(holds<float>(m, { 4, 5, 4, 5 }), "a row from another one");
    CHECK((duet::set_all({ { y, x + 1 }, { m.row(0), y * 2 }, { late, 5 } }), holds<float>(y, { 2, 3 })),
          "set_all");
    CHECK(holds<float>(m, { 4, 6, 4, 5 }) && holds<float>(late, { 5, 5 }), "set_all uses earlier results");
    matrix on, in;
    CHECK(&y.set_on(DUET_CPU, x * 3) == &y && holds<float>(y, { 3, 6 }), "set_on");
    CHECK(&y.set_math(DUET_MATH_TF32, x + 1) == &y && holds<float>(y, { 2, 3 }), "set_math");
    on.set_on(DUET_AUTO, x > 1);
    in.set_math(DUET_MATH_STRICT, 2.5);
    CHECK(on.type() == duet::boolean && holds<bool>(on, { false, true }), "set_on of an empty matrix");
    CHECK(in.rank() == 0 && holds<double>(in, { 2.5 }), "set_math of an empty matrix");
    m.row(0).set_on(DUET_CPU, 8);
    m.row(1).set_math(DUET_MATH_BF16, x);
    CHECK(holds<float>(m, { 8, 8, 1, 2 }), "set_on and set_math of a view");
    CHECK(no_formulas(), "a formula leaked");
    tap_point("assignment");
}

static void test_elements()
{
    matrix m(duet::f32, 2, 3);
    float next = 0;
    for (float &x : m.overwrite<float>()) x = next++;
    const auto e = m.read<float>();
    CHECK(e.size() == 6 && e(1, 2) == 5 && e[4] == 4 && e.data()[3] == 3 && e.shape() == m.shape(), "read");
    CHECK(*(e.end() - 1) == 5 && e.is_dense(), "iterators");
    m.update<float>()(0, 1) = 9;
    CHECK(m.read<float>()[1] == 9, "update");
    matrix t = m.transposed();
    const auto f = t.read<float>();
    CHECK(f(0, 1) == 3 && f[1] == 3 && f[2] == 9 && !f.is_dense(), "a view with gaps");
    CHECK(matrix(duet::f32, 0, 3).read<float>().size() == 0, "no elements");
    float array[6] = {};
    t.to_array(array);
    CHECK(array[0] == 0 && array[1] == 3 && array[2] == 9 && array[5] == 5, "to_array of a view with gaps");
    CHECK(t.to_vector<float>() == std::vector<float>({ 0, 3, 9, 4, 2, 5 }), "to_vector");
    const matrix flags = { true, false, true }, z = { std::complex<double>(1, 2) };
    CHECK(flags.to_vector<bool>() == std::vector<bool>({ true, false, true }), "to_vector of bool");
    CHECK(z.to_vector<std::complex<double>>()[0] == std::complex<double>(1, 2), "to_vector of complex");
    CHECK(matrix(duet::f32, 0, 3).to_vector<float>().empty(), "to_vector of no elements");

    /* C++ aligns complex numbers to 8 bytes. Of two arrays, one is not aligned to 16 bytes. */
    using complex = std::complex<double>;
    struct {
        const complex *p;
        const complex *data() const { return p; }
        std::size_t size() const { return 2; }
    } list;
    alignas(16) double source[6] = { 1, 2, 3, 4, 5, 6 }, to[6];
    for (int i = 0; i < 2; i++) {
        list.p = reinterpret_cast<const complex *>(source + i);
        const matrix of_list(list);
        CHECK(of_list.to_vector<complex>() == std::vector<complex>(list.p, list.p + 2), "offset %d", i);
        of_list.to_array(reinterpret_cast<complex *>(to + i));
        CHECK(std::memcmp(to + i, source + i, 4 * sizeof *to) == 0, "to_array, offset %d", i);
    }
    CHECK(matrix(std::vector<complex>()).count() == 0, "no complex numbers");
    tap_point("elements");
}

static void test_views()
{
    matrix m = matrix::arange(duet::f64, 0, 12).reshaped(3, 4);
    CHECK(m.shape() == duet::shape(3, 4), "reshaped");
    CHECK(holds<double>(m.row(1), { 4, 5, 6, 7 }) && holds<double>(m.column(1), { 1, 5, 9 }), "row, column");
    CHECK(holds<double>(m.indexed(1, duet::range(1, 3)), { 5, 6 }), "indexed");
    CHECK(holds<double>(m.stepped(1, 0, 4, 2).row(0), { 0, 2 }), "stepped");
    CHECK(holds<double>(m.picked(1, -1), { 3, 7, 11 }) && holds<double>(m.slice(2, 1), { 8, 9, 10, 11 }),
          "slice");
    CHECK(holds<double>(m.flipped(0).row(0), { 8, 9, 10, 11 }), "flipped");
    CHECK(holds<double>(m.submatrix(1, 1, 2, 2), { 5, 6, 9, 10 }), "submatrix");
    CHECK(holds<double>(m.diagonal(1), { 1, 6, 11 }), "diagonal");
    CHECK(m.transposed().shape() == duet::shape(4, 3) && m.permuted(1, 0).shape() == duet::shape(4, 3),
          "axes");
    CHECK(m.permuted(duet::axes(1, 0)).shape() == duet::shape(4, 3), "a list of axes");
    CHECK(m.expanded(0).shape() == duet::shape(1, 3, 4), "expanded");
    CHECK(m.expanded(0).squeezed(0).shape() == m.shape(), "squeezed");
    CHECK(m.broadcast_to(2, 3, 4).shape() == duet::shape(2, 3, 4), "broadcast_to");
    CHECK(m.reshaped(duet::shape(std::vector<int>{ 2, 6 })).size(1) == 6, "a shape known at run time");
    const std::vector<matrix> part = m.split(1, 3);
    CHECK(part.size() == 3 && holds<double>(part[2], { 3, 7, 11 }), "split");
    tap_point("views");
}

/* ---- formulas ---- */

static duet::expr twice(const duet::expr &e) { return e * 2; }

static void test_formulas()
{
    const matrix x = { 3.0f, -2.0f }, y = { 2.0f, 2.0f }, a = { { 1.0f, 2.0f }, { 3.0f, 4.0f } };
    const matrix i = { 6, 3 }, j = { 3, 3 }, p = { true, false }, q = { true, true };
    CHECK(holds<float>(x + y, { 5, 0 }) && holds<float>(x - 1, { 2, -3 }) && holds<float>(2 * x, { 6, -4 }),
          "+ - *");
    CHECK(holds<float>(x / y, { 1.5, -1 }) && holds<float>(-x, { -3, 2 }) && holds<float>(x % 2, { 1, 0 }),
          "/ and remainder");
    CHECK(holds<bool>(x == 3, { true, false }) && holds<bool>(x != 3, { false, true }), "== !=");
    CHECK(holds<bool>(x < y, { false, true }) && holds<bool>(x <= -2, { false, true }), "< <=");
    CHECK(holds<bool>(0 > x, { false, true }) && holds<bool>(x >= y, { true, false }), "> >=");
    CHECK(holds<int>(i & j, { 2, 3 }) && holds<int>(i | j, { 7, 3 }) && holds<int>(i ^ 1, { 7, 2 }), "& | ^");
    CHECK(holds<int>(~i, { -7, -4 }) && holds<bool>(p & q, { true, false }), "~, and & of bool");
    CHECK(holds<bool>(~p | p, { true, true }) && holds<bool>(p ^ q, { false, true }), "| ^ ~ of bool");
    CHECK((matrix(x + std::complex<double>(0, 1)).type() == duet::c64), "a complex number");
    CHECK(holds<uint64_t>(matrix::zeros(duet::u64, 1) + UINT64_MAX, { UINT64_MAX }), "a large integer");

    CHECK(holds<float>(a(duet::all, 1), { 2, 4 }) && holds<float>(a(-1), { 3, 4 }), "x[:, 1]");
    CHECK(holds<float>(a(duet::range(0, 1), 0), { 1 }) && holds<float>(a(duet::rest, 0), { 1, 3 }), "ranges");
    CHECK(holds<float>(a(duet::range(duet::none, duet::none, -1), 0), { 3, 1 }), "a negative step");
    CHECK((a + 0)(duet::newaxis, 0).shape() == duet::shape(1, 2), "newaxis, of a formula");
    CHECK(a.T()(0).reshape(2, 1).shape() == duet::shape(2, 1) && holds<float>(a.T()(0), { 1, 3 }),
          "T, reshape");
    CHECK(a.reshape(-1).rank() == 1 && a.reshape(duet::shape(1, 4)).rank() == 2, "reshape of a matrix");
    CHECK(a.permute(1, 0).type() == duet::f32 && (a + a).permute(duet::axes(1, 0)).size(0) == 2, "permute");
    CHECK(holds<float>(duet::sum(a, 0), { 4, 6 }) && holds<float>(duet::sum(a, { 0, 1 }), { 10 }), "axes");
    CHECK(duet::sum_keep(a, 1).shape() == duet::shape(2, 1) && duet::any_keep(p, 0).rank() == 1, "keep");
    CHECK(duet::sum(a, std::vector<int>{ 0, 1 }).rank() == 0, "axes known at run time");
    CHECK(holds<bool>(duet::all(q), { true }) && holds<bool>(duet::any(p, 0), { true }), "any, all");
    CHECK(holds<float>(duet::matmul(a, x), { -1, 1 }) && holds<float>(twice(x), { 6, -4 }), "functions");
    CHECK(holds<float>(twice(duet::exp(x) * 0 + 1), { 2, 2 }), "a formula as a parameter");
    CHECK(duet::item(duet::sum(a)) == 10 && duet::item<int>(duet::max(a)) == 4, "item");
    CHECK(holds<float>(duet::eval(x), { 3, -2 }) && holds<double>(duet::eval(2.5), { 2.5 }), "eval");
    const duet::expr e = a * a;
    CHECK(e.status() == DUET_OK && e.type() == duet::f32 && e.rank() == 2 && e.size(1) == 2, "properties");
    tap_point("operators");
}

static void test_lifetime()
{
    CHECK(no_formulas(), "a formula leaked before");
    matrix x = { 1.0f, 2.0f }, y(duet::f32, 2);
    {
        const duet::expr unused = x + y;
    }
    CHECK(no_formulas(), "a formula that was not evaluated leaked");
    {
        duet::expr e = x + y, f = std::move(e), g;
        g = std::move(f);
        g = x * 2; /* drops the first one */
        duet::expr &same = g;
        g = std::move(same);
        y = g;
        CHECK(holds<float>(y, { 2, 4 }), "a formula that was moved");
        const duet::outcome o = duet::try_set(y, g);
        CHECK(o.status() == DUET_SPENT && std::strstr(o.text(), "already evaluated"), "%s", o.text());
        matrix z;
        const duet::outcome p = duet::try_call([&] { z.set_on(DUET_CPU, g); });
        CHECK(p.status() == DUET_SPENT && std::strstr(p.text(), "duet_set_on: e"), "%s", p.text());
    }
    CHECK(no_formulas(), "moved formulas leaked");
    {
        const duet::expr e = x * x;
        matrix z;
        duet::set_all({ { y, e + 1 }, { z, e - 1 } });
        CHECK(y.read<float>()[1] == 5, "a formula in two others");
    }
    CHECK(duet::try_set(y, duet::expr()).status() == DUET_BAD_ARGUMENT, "an expr without a formula");
    {
        const duet::expr step = duet::hold(x + 1);
        for (int i = 0; i < 3; i++) x = step;
        CHECK(holds<float>(x, { 4, 5 }), "a persistent formula");
        y = step * 2;
        CHECK(holds<float>(y, { 10, 12 }), "a persistent formula as an operand");
    }
    CHECK(no_formulas(), "a persistent formula leaked");
    {
        duet_expr raw = (x + 1).use();
        CHECK(duet_set(y.get(), raw) == DUET_OK && holds<float>(y, { 5, 6 }), "a formula for a C function");
        y = duet::expr(duet_mul(x.get(), 2));
        y = duet::sqrt(duet_mul(x.get(), 4));
        CHECK(holds<float>(y, { 4, std::sqrt(20.0f) }), "a formula of a C function");
    }
    CHECK(no_formulas(), "a formula leaked");
    tap_point("lifetime of formulas");
}

/* ---- every row: the same formula as the C function makes ---- */

static void text_of(duet_expr e, std::string &text)
{
    char *p = nullptr;
    std::size_t n = 0;
    std::FILE *out = open_memstream(&p, &n);
    const duet_status s = (duet_print_expr)(out, e);
    std::fclose(out);
    const char *why = s == DUET_OK ? p : std::strstr(duet_error(), "duet_");
    text = std::to_string(s) + " " + (why ? why : duet_error());
    std::free(p);
}
static void same_formula(const char *name, const duet::expr &cpp, duet_expr c)
{
    std::string a, b;
    text_of(cpp.get(), a);
    text_of(c, b);
    CHECK(a == b, "%s: \"%s\" is not \"%s\"", name, a.c_str(), b.c_str());
    (void)(duet_drop)(c);
}

static const int64_t some_sizes[] = { 2, -1, 3 };
static const int some_axes[] = { 3, 2, 1, 0 };
#define C_plain
#define C_type    , DUET_F64
#define C_axis    , 1
#define C_overlap , DUET_OVERLAP_SAME
#define C_classes , 5, DUET_F32
#define C_top     , 2, 1
#define C_bins    , 0, 1, 4
#define C_sizes   , 3, some_sizes
#define C_order   , 4, some_axes
#define C_range   , 1, 0, 2, 1
#define C_offset  , 1
#define C_window  , 1, 2, 1, 1
#define C_indices , "ij,jk->ik"
#define C_number  , 0.5
#define CPP_plain
#define CPP_type    , duet::f64
#define CPP_axis    , 1
#define CPP_overlap , duet::overlap_same
#define CPP_classes , 5, duet::f32
#define CPP_top     , 2, 1
#define CPP_bins    , 0, 1, 4
#define CPP_sizes                                                                                            \
    , { 2, -1, 3 }
#define CPP_order                                                                                            \
    , { 3, 2, 1, 0 }
#define CPP_range   , 1, 0, 2, 1
#define CPP_offset  , 1
#define CPP_window  , 1, 2
#define CPP_indices , "ij,jk->ik"
#define CPP_number  , 0.5
/* Options: every field has another value, in both structs, by their bytes. */
template <class C> static const C *numbered()
{
    static C c;
    int32_t n[sizeof(C) / sizeof(int32_t)];
    for (std::size_t i = 0; i < sizeof n / sizeof *n; i++) n[i] = 1 + static_cast<int32_t>(i) % 2;
    std::memcpy(&c, n, sizeof c);
    return &c;
}
// clang-format off
#define OPTIONS(X)                                                                                           \
    X(conv) X(pool) X(conv_grad) X(conv_transposed) X(pool_grad) X(scale)                                    \
    X(conv1) X(pool1) X(conv1_grad) X(conv1_transposed) X(pool1_grad) X(scale1)                              \
    X(conv3) X(pool3) X(conv3_grad) X(conv3_transposed) X(pool3_grad) X(scale3)                              \
    X(fourier) X(triangle) X(solver)
// clang-format on
#define C_conv               , numbered<duet_conv>()
#define C_pool               , numbered<duet_pool>()
#define C_conv_grad          , numbered<duet_conv_grad>()
#define C_conv_transposed    , numbered<duet_conv_transposed>()
#define C_pool_grad          , numbered<duet_pool_grad>()
#define C_scale              , numbered<duet_scale>()
#define C_conv1              , numbered<duet_conv1>()
#define C_pool1              , numbered<duet_pool1>()
#define C_conv1_grad         , numbered<duet_conv1_grad>()
#define C_conv1_transposed   , numbered<duet_conv1_transposed>()
#define C_pool1_grad         , numbered<duet_pool1_grad>()
#define C_scale1             , numbered<duet_scale1>()
#define C_conv3              , numbered<duet_conv3>()
#define C_pool3              , numbered<duet_pool3>()
#define C_conv3_grad         , numbered<duet_conv3_grad>()
#define C_conv3_transposed   , numbered<duet_conv3_transposed>()
#define C_pool3_grad         , numbered<duet_pool3_grad>()
#define C_scale3             , numbered<duet_scale3>()
#define C_fourier            , nullptr
#define C_triangle           , numbered<duet_triangle>()
#define C_solver             , numbered<duet_solver>()
#define C_csr                , 4, 1
#define C_turned             , 1
#define CPP_conv             , *numbered<duet::conv_options>()
#define CPP_pool             , *numbered<duet::pool_options>()
#define CPP_conv_grad        , *numbered<duet::conv_grad_options>()
#define CPP_conv_transposed  , *numbered<duet::conv_transposed_options>()
#define CPP_pool_grad        , *numbered<duet::pool_grad_options>()
#define CPP_scale            , *numbered<duet::scale_options>()
#define CPP_conv1            , *numbered<duet::conv1_options>()
#define CPP_pool1            , *numbered<duet::pool1_options>()
#define CPP_conv1_grad       , *numbered<duet::conv1_grad_options>()
#define CPP_conv1_transposed , *numbered<duet::conv1_transposed_options>()
#define CPP_pool1_grad       , *numbered<duet::pool1_grad_options>()
#define CPP_scale1           , *numbered<duet::scale1_options>()
#define CPP_conv3            , *numbered<duet::conv3_options>()
#define CPP_pool3            , *numbered<duet::pool3_options>()
#define CPP_conv3_grad       , *numbered<duet::conv3_grad_options>()
#define CPP_conv3_transposed , *numbered<duet::conv3_transposed_options>()
#define CPP_pool3_grad       , *numbered<duet::pool3_grad_options>()
#define CPP_scale3           , *numbered<duet::scale3_options>()
#define CPP_fourier
#define CPP_triangle , *numbered<duet::triangle_options>()
#define CPP_solver   , *numbered<duet::solver_options>()
#define CPP_csr      , 4, true
#define CPP_turned   , true

/* A member has the same place in both structs. */
#define SAME_PLACE(name, member)                                                                             \
    static_assert(offsetof(duet::name##_options, member) == offsetof(duet_##name, member), "options "        \
                                                                                           "differ");
#define SAME_CONV(name)                                                                                      \
    SAME_PLACE(name, stride)                                                                                 \
    SAME_PLACE(name, pad) SAME_PLACE(name, dilation) SAME_PLACE(name, groups) SAME_PLACE(name, more)
#define SAME_POOL(name) SAME_PLACE(name, window) SAME_PLACE(name, stride) SAME_PLACE(name, pad)
// clang-format off
SAME_CONV(conv)
SAME_CONV(conv1)
SAME_CONV(conv3)
SAME_CONV(conv_grad)
SAME_CONV(conv1_grad)
SAME_CONV(conv3_grad)
SAME_CONV(conv_transposed)
SAME_CONV(conv1_transposed)
SAME_CONV(conv3_transposed)
SAME_PLACE(conv_grad, size)
SAME_PLACE(conv1_grad, size)
SAME_PLACE(conv3_grad, size)
SAME_PLACE(conv_transposed, output_pad)
SAME_PLACE(conv1_transposed, output_pad)
SAME_PLACE(conv3_transposed, output_pad)
SAME_POOL(pool)
SAME_POOL(pool1)
SAME_POOL(pool3)
SAME_POOL(pool_grad)
SAME_POOL(pool1_grad)
SAME_POOL(pool3_grad)
SAME_PLACE(pool_grad, size)
SAME_PLACE(pool1_grad, size)
SAME_PLACE(pool3_grad, size)
SAME_PLACE(scale, scale)
SAME_PLACE(scale1, scale)
SAME_PLACE(scale3, scale)
SAME_PLACE(fourier, axes)
SAME_PLACE(fourier, axis)
SAME_PLACE(fourier, n)
SAME_PLACE(triangle, lower)
SAME_PLACE(triangle, unit)
SAME_PLACE(triangle, transposed)
SAME_PLACE(solver, refine)
SAME_PLACE(padding, before)
SAME_PLACE(padding, after)
SAME_PLACE(padding, mode)
SAME_PLACE(padding, value)
SAME_PLACE(windows, window)
SAME_PLACE(windows, stride)
SAME_PLACE(windows, pad)
SAME_PLACE(windows, dilation)
// clang-format on

static int compared;

/* All rows with operands that some of them take; the others report the same error as in C. */
static void compare_rows(const matrix &x, const matrix &y, const matrix &z)
{
    duet_matrix *const cx = x.get(), *const cy = y.get(), *const cz = z.get();
#define SAME(name, cpp, c)       same_formula(#name, duet::name cpp, (duet_##name)c), compared++;
#define DUET_CALL1(name, o, ...) SAME(name, (x CPP_##o), (cx C_##o))
#define DUET_CALL2(name, o, ...) SAME(name, (x, y CPP_##o), (cx, cy C_##o))
#define DUET_CALL3(name, o, ...) SAME(name, (x, y, z CPP_##o), (cx, cy, cz C_##o))
#define DUET_DEF1                DUET_CALL1
#define DUET_DEF2                DUET_CALL2
#define DUET_MAP1(name, ...)     SAME(name, (x), (cx))
#define DUET_MAP2(name, ...)     SAME(name, (x, y), (cx, cy))
#define DUET_MAP3(name, ...)     SAME(name, (x, y, z), (cx, cy, cz))
#define DUET_INT1                DUET_MAP1
#define DUET_INT2                DUET_MAP2
#define DUET_FOLD1(name, ...)                                                                                \
    DUET_MAP1(name, )                                                                                        \
    same_formula(#name, duet::name(x, 1), duet_##name##_axes(cx, 1));                                        \
    same_formula(#name, duet::name(x, { 0, -1 }), duet_##name##_axes(cx, 0, -1));                            \
    same_formula(#name, duet::name##_keep(x, { 0, -1 }), duet_##name##_axes_keep(cx, 0, -1));
#define DUET_FOLD2(name, ...)                                                                                \
    DUET_MAP2(name, )                                                                                        \
    same_formula(#name, duet::name(x, y, { 0, -1 }), duet_##name##_axes(cx, cy, 0, -1));                     \
    same_formula(#name, duet::name##_keep(x, y, { 0, -1 }), duet_##name##_axes_keep(cx, cy, 0, -1));
#define DUET_MOMENT1 DUET_FOLD1
#define DUET_PLACE1(name, ...)                                                                               \
    DUET_MAP1(name, )                                                                                        \
    same_formula(#name, duet::name(x, 1), (duet_##name##_axis)(cx, 1));                                      \
    same_formula(#name, duet::name##_keep(x, 1), (duet_##name##_keep)(cx, 1));
#include <duet/ops.def>
#define DUET_COMPOSED1(name, ...)  SAME(name, (x), (cx))
#define DUET_COMPOSED2(name, ...)  SAME(name, (x, y), (cx, cy))
#define DUET_COMPOSED3(name, ...)  SAME(name, (x, y, z), (cx, cy, cz))
#define DUET_COMPOSED1N(name, ...) SAME(name, (x, 0.5), (cx, 0.5))
#define DUET_COMPOSED_MATRIX1      DUET_COMPOSED1
#define DUET_COMPOSED_FOLD1(name, ...)                                                                       \
    SAME(name, (x), (cx))                                                                                    \
    same_formula(#name, duet::name(x, { 0, -1 }), duet_##name##_axes(cx, 0, -1));
#include <duet/composed.def>
#define DUET_NETWORK1(name, ...)  SAME(name, (x), (cx))
#define DUET_NETWORK2(name, ...)  SAME(name, (x, y), (cx, cy))
#define DUET_NETWORK2R(name, ...) SAME(name, (x, y, 0.5), (cx, cy, 0.5))
#define DUET_NETWORK3R(name, ...) SAME(name, (x, y, z, 0.5), (cx, cy, cz, 0.5))
#include <duet/networks.def>
    SAME(flip, (x, 1), (cx, 1))
    SAME(squeeze, (x, 0), (cx, 0))
    SAME(expand_dims, (x, 1), (cx, 1))
    SAME(pick, (x, 1, 0), (cx, 1, 0))
    SAME(part, (x, 1, 2, 1), (cx, 1, 2, 1))
    SAME(moveaxis, (x, 0, 1), (cx, 0, 1))
    SAME(swapaxes, (x, 0, -1), (cx, 0, -1))
    SAME(outer, (x, y), (cx, cy))
    SAME(vdot, (x, y), (cx, cy))
    SAME(cross, (x, y), (cx, cy))
    SAME(array_equal, (x, y), (cx, cy))
    SAME(allclose, (x, y), (cx, cy, 1e-5, 1e-8))
    SAME(pow_int, (x, 3), (cx, 3))
    SAME(p_max_pool_h, (x, 2, 2), (cx, 2, 2))
    SAME(p_max_pool_p, (x, 2, 2), (cx, 2, 2))
    SAME(fft, (x), (cx, 0, -1))
    SAME(ifft, (x, 4), (cx, 4, -1))
    SAME(rfft, (x, 4, 0), (cx, 4, 0))
    SAME(irfft, (x), (cx, 0, -1))
    SAME(fft2, (x), (cx))
    SAME(ifft2, (x), (cx))
    SAME(rfft2, (x), (cx))
    SAME(irfft2, (x), (cx))
    SAME(index, (x, 1, duet::newaxis, duet::all, duet::rest), (cx, DUET_AT(1), DUET_NEW, DUET_ALL, DUET_REST))
    SAME(tril, (x), (cx, 0))
    SAME(triu, (x, -1), (cx, -1))
    SAME(diag, (x, 1), (cx, 1))
    SAME(meshgrid, (duet::sum(x, 1), 0, { 4, 3 }), (duet_sum_axes(cx, 1), 0, 4, 3))
    SAME(vecdot, (x, y), (cx, cy, -1))
    same_formula("cross", duet::cross(x, y, 0), duet_cross_axis(cx, cy, 0));
    SAME(nextafter, (x, 2), (cx, 2))
    SAME(softmax, (x, 0), (cx, 0))
    SAME(log_softmax, (x, -1), (cx, -1))
    SAME(layer_norm, (x, 1, 0, 0.5, { 0, 1 }), (cx, 1, 0, 0.5, 0, 1))
    SAME(rms_norm, (x, 1, 0.5), (cx, 1, 0.5))
    SAME(rms_norm, (x, 1, 0.5, 0), (cx, 1, 0.5, 0))
    SAME(group_norm, (x, 1, 0, 2, 0.5), (cx, 1, 0, 2, 0.5))
    SAME(trunc_divide, (x, y), (cx, cy))
    SAME(bottom_k, (x, 2, 0), (cx, 2, 0))
    SAME(isin, (x, y), (cx, cy))
    SAME(searchsorted, (duet::sum(x, 1), y), (duet_sum_axes(cx, 1), cy, DUET_SIDE_LEFT))
    SAME(searchsorted, (duet::sum(x, 1), y, duet::side_right), (duet_sum_axes(cx, 1), cy, DUET_SIDE_RIGHT))
    SAME(diff, (x), (cx, 1, -1))
    SAME(diff, (x, 2, 0), (cx, 2, 0))
    SAME(cov, (x), (cx, 1))
    SAME(corrcoef, (x), (cx))
    SAME(median, (x), (cx))
    SAME(median, (x, { 0, -1 }), (cx, 0, -1))
    same_formula("median", duet::median_keep(x, 1), duet_median_axes_keep(cx, 1));
    SAME(quantile, (x, 0.25), (cx, 0.25))
    SAME(quantile, (x, 0.25, 1), (cx, 0.25, 1))
    same_formula("percentile", duet::percentile_keep(x, 30, 0), duet_percentile_axes_keep(cx, 30, 0));
    SAME(var_ddof, (x, 1, { 0, 1 }), (cx, 1, 0, 1))
    SAME(std_ddof, (x, 1), (cx, 1))
    SAME(vector_norm, (x, 3), (cx, 3))
    SAME(vector_norm, (x, 3, 1), (cx, 3, 1))
    SAME(pinv, (x), (cx))
    SAME(matrix_rank, (x), (cx, -1))
    SAME(matrix_rank, (x, 0.5), (cx, 0.5))
    SAME(matrix_norm, (x), (cx, DUET_NORM_FRO))
    SAME(matrix_norm, (x, DUET_NORM_1), (cx, DUET_NORM_1))
    SAME(cond, (x), (cx, DUET_NORM_2))
    SAME(matrix_power, (duet::matmul(x, x.T()), 3), (duet_matmul(cx, duet_transpose(cx)), 3))
    SAME(iota, (duet::i32, 7), (DUET_I32, 7))
    SAME(reshape, (x, 2, -1), (cx, 2, -1))
    SAME(broadcast, (x, 3, 4), (cx, 3, 4))
    SAME(permute, (x, 1, 0), (cx, 1, 0))
    SAME(concat, (0, x, y), (0, cx, cy))
    SAME(concat, (-1, { x, z, x }), (-1, cx, cz, cx))
    SAME(stack, (1, x, z), (1, cx, cz))
    SAME(stack, (0, { x }), (0, cx))
    SAME(tile, (x, 2), (cx, 2))
    SAME(tile, (x, 2, 1, 3), (cx, 2, 1, 3))
    SAME(tile, (x, { 1, 2, 1, 1, 3 }), (cx, 1, 2, 1, 1, 3))
    SAME(repeat, (x, 2, 0), (cx, 2, 0))
    SAME(roll, (x, -1, 1), (cx, -1, 1))
    for (int mode = 0; mode < 3; mode++) {
        duet_padding c = { { 1, 0, 2 }, { 2 }, static_cast<duet_pad_mode>(mode), 2.5 };
        duet::padding_options o;
        o.before[0] = 1;
        o.before[2] = 2;
        o.after[0] = 2;
        o.mode = static_cast<duet_pad_mode>(mode);
        o.value = 2.5;
        SAME(pad, (x, o), (cx, &c))
    }
    SAME(im2col, (x, *numbered<duet::windows_options>()), (cx, numbered<duet_windows>()))
}

static void test_rows()
{
    using duet::f32, duet::i64, duet::c64;
    const matrix i1(i64, 3), i2(i64, 2, 2), v(f32, 3), m(f32, 4, 4), l(f32, 2, 4, 6), n(f32, 4, 4, 3),
        x4(f32, 2, 4, 6, 6), w4(f32, 4, 2, 3, 3), x5(f32, 2, 4, 4, 4, 4), w5(f32, 2, 2, 2, 2, 2),
        z(c64, 4, 4);
    compare_rows(i1, i1, i1);
    compare_rows(i2, i1, i2);
    compare_rows(v, v, v);
    compare_rows(m, m, m);
    compare_rows(m, i1, m);
    compare_rows(l, n, l);
    compare_rows(x4, w4, x4);
    compare_rows(x4, x4, v);
    compare_rows(x5, w5, x5);
    compare_rows(z, z, z);
    CHECK(compared > 2000 && no_formulas(), "%d formulas", compared);
    tap_point("every operator makes the formula of its C function");

    const matrix image = matrix::ones(f32, 1, 1, 3, 3), filter = matrix::ones(f32, 1, 1, 3, 3);
    duet::conv_options o;
    o.pad[0] = o.pad[1] = 1;
    CHECK(holds<float>(duet::conv2d(image, filter, o), { 4, 6, 4, 6, 9, 6, 4, 6, 4 }), "options");
    CHECK(holds<float>(duet::conv2d(image, filter), { 9 }), "default options");
#if __cplusplus >= 202002L
    CHECK(holds<float>(duet::conv2d(image, filter, { .pad = { 1, 1 } }), { 4, 6, 4, 6, 9, 6, 4, 6, 4 }),
          "options by name");
    CHECK(holds<float>(duet::max_pool2d(image, { .window = { 3, 3 } }), { 1 }), "a window by name");
#endif
    CHECK(holds<float>(duet::solve(matrix::eye(f32, 2) * 2, matrix(f32, { 2, 4 })), { 1, 2 }), "solve");
    tap_point("options");
}

/* Formulas that arrange elements, compared with loops over random sizes. */
static void test_arrange()
{
    uint32_t random = 1;
    const auto below = [&](int n) {
        return static_cast<int>((random = random * 1664525 + 1013904223) >> 8) % n;
    };
    for (int trial = 0; trial < 50; trial++) {
        const int rows = 1 + below(4), cols = 1 + below(5), count = 1 + below(40), axis = below(2);
        std::vector<matrix> part;
        std::vector<int> of_rows, stacked;
        for (int k = 0; k < count; k++) {
            part.push_back(matrix::arange(duet::i32, 0, rows * cols).reshape(rows, cols) + 100 * k);
            for (const int x : part.back().read<int>()) stacked.push_back(x);
        }
        for (int i = 0; axis == 1 && i < rows; i++)
            for (const matrix &m : part)
                for (int j = 0; j < cols; j++) of_rows.push_back(m.read<int>()(i, j));
        const matrix joined = duet::concat(axis, part), piled = duet::stack(0, part);
        CHECK(joined.to_vector<int>() == (axis ? of_rows : stacked), "concat of %d along %d", count, axis);
        CHECK(piled.shape() == duet::shape(count, rows, cols) && piled.to_vector<int>() == stacked,
              "stack of %d", count);
        std::vector<duet::expr> formula;
        for (const matrix &m : part) formula.push_back(m * 1);
        CHECK(matrix(duet::concat(0, formula)).to_vector<int>() == stacked, "concat of %d formulas", count);

        const int64_t by = below(9) - 4;
        const matrix &x = part[0], rolled = duet::roll(x, by, 1), wide = duet::repeat(x, 2, 1),
                     tiled = duet::tile(x, 2, 1);
        bool same = wide.size(1) == 2 * cols && tiled.size(0) == 2 * rows;
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < cols; j++) {
                const int e = i * cols + j;
                same = same && rolled.read<int>()(i, ((j + by) % cols + cols) % cols) == e;
                same = same && wide.read<int>()(i, 2 * j) == e && wide.read<int>()(i, 2 * j + 1) == e;
                same = same && tiled.read<int>()(i, j) == e && tiled.read<int>()(rows + i, j) == e;
            }
        CHECK(same, "roll, repeat, tile of %d x %d", rows, cols);
    }
    const matrix v = { 1.0f, 2.0f, 3.0f };
    CHECK(holds<float>(duet::concat(0, v, v * 2), { 1, 2, 3, 2, 4, 6 }), "concat of a matrix and a formula");
    CHECK(holds<float>(duet::stack(1, { v, v + 1, -v })(0), { 1, 2, -1 }), "stack of a list");
    CHECK(holds<float>(duet::concat(0, std::array<duet::expr, 1>{ v + 1 }), { 2, 3, 4 }), "concat of one");
    duet::padding_options o;
    o.before[0] = o.after[0] = 2;
    o.mode = duet::pad_reflect;
    CHECK(holds<float>(duet::pad(v, o), { 3, 2, 1, 2, 3, 2, 1 }), "pad");
    duet::windows_options windows;
    windows.window[0] = windows.window[1] = 2;
    const matrix image = matrix::arange(duet::f32, 0, 6).reshape(1, 1, 2, 3);
    CHECK(holds<float>(duet::im2col(image, windows), { 0, 1, 1, 2, 3, 4, 4, 5 }), "im2col");
#if __cplusplus >= 202002L
    CHECK(holds<float>(duet::pad(v, { .before = { 1 }, .mode = duet::pad_edge }), { 1, 1, 2, 3 }),
          "padding by name");
    CHECK(holds<float>(duet::im2col(image, { .window = { 2, 2 } }), { 0, 1, 1, 2, 3, 4, 4, 5 }),
          "windows by name");
#endif
    CHECK(duet::pad_for(duet::overlap_same, 5) == 2 && duet::pad_for(duet::overlap_full, 3, 2) == 4,
          "pad_for");
    for (int32_t window = 1; window < 6; window++)
        for (int32_t stride = 0; stride < 4; stride++)
            CHECK(duet::same_padding(11, window, stride, 2) == duet_same_padding(11, window, stride, 2),
                  "same_padding");
    CHECK(no_formulas(), "a formula leaked");
    matrix y;
    CHECK(duet::try_set(y, duet::concat(0, std::vector<matrix>())).status() == DUET_BAD_ARGUMENT,
          "no operands");
    const duet::outcome bad = duet::try_set(y, duet::stack(0, { v * 2, image + 1 }));
    CHECK(bad.status() == DUET_BAD_SHAPE && names(bad.text(), __LINE__ - 1), "%s", bad.text());
    CHECK(no_formulas(), "a failed formula leaked");
    tap_point("formulas that arrange elements");
}

/* The optimisers give the elements of the C functions. */
static void test_optimizers()
{
    matrix w[2], u[2], v[2], g = matrix::linspace(duet::f32, -1, 1, 6),
                             rate = matrix::full(duet::f32, 0.1, 1);
    duet_matrix *c[3];
    for (int k = 0; k < 2; k++) {
        w[k] = matrix::ones(duet::f32, 6);
        u[k] = matrix::zeros(duet::f32, 6);
        v[k] = matrix::zeros(duet::f32, 6);
    }
    c[0] = w[1].get(), c[1] = u[1].get(), c[2] = v[1].get();
    const auto same = [&](duet_status s) {
        return s == DUET_OK && duet::item<bool>(duet::array_equal(w[0], w[1]));
    };
    duet::sgd(w[0], 2 * g, rate);
    CHECK(same((duet_sgd)(c[0], duet_mul(2, g.get()), rate.get(), nullptr)), "sgd");
    duet::sgd_options sgd;
    sgd.momentum = 0.5;
    sgd.velocity = u[0];
    sgd.nesterov = true;
    duet::sgd(w[0], g, 0.1, sgd);
    const duet_sgd_options c_sgd = { 0.5, c[1], 1, 0 };
    CHECK(same((duet_sgd)(c[0], g.get(), 0.1, &c_sgd)), "sgd with momentum");
    duet::adam(w[0], g, u[0], v[0], rate, 1);
    CHECK(same((duet_adam)(c[0], g.get(), c[1], c[2], rate.get(), 1, nullptr)), "adam");
    duet::adam_options adam;
    adam.decay = 0.1;
    duet::adamw(w[0], g, u[0], v[0], 0.2, 2, adam);
    const duet_adam_options c_adam = { 0, 0, 0, 0.1 };
    CHECK(same((duet_adamw)(c[0], g.get(), c[1], c[2], 0.2, 2, &c_adam)), "adamw");
    duet::rmsprop_options rms;
    rms.momentum = 0.5;
    rms.velocity = u[0];
    duet::rmsprop(w[0], g, v[0], 0.1, rms);
    const duet_rmsprop_options c_rms = { 0, 0, 0.5, c[1], 0 };
    CHECK(same((duet_rmsprop)(c[0], g.get(), c[2], 0.1, &c_rms)), "rmsprop");
    duet::adagrad(w[0], duet::clip_norm(g, duet::global_norm(g, w[0]), 0.5), v[0], rate);
    const duet_expr norm = duet_global_norm(g.get(), c[0]);
    CHECK(same((duet_adagrad)(c[0], duet_clip_norm(g.get(), norm, 0.5), c[2], rate.get(), nullptr)),
          "adagrad");
    CHECK(duet::item(duet::global_norm({ g })) == duet::item(duet::norm(g)), "global_norm of a list");
    tap_point("optimisers");
}

/* The statements that write random numbers, noise and the like give the elements of the C functions. */
static void test_statements()
{
    matrix a(duet::f32, 5, 4), b(duet::f32, 5, 4), x = matrix::linspace(duet::f32, -1, 1, 20).reshaped(5, 4);
    const auto same = [&](duet_status s) {
        const bool equal = s == DUET_OK && duet::item<bool>(duet::array_equal(a, b));
        a = 7;
        b = 8;
        return equal;
    };
    duet_matrix *const c = b.get();
    duet::random_uniform(a, 3, 1, 2);
    CHECK(same((duet_random_uniform)(c, 3, 1, 2)), "random_uniform");
    duet::random_normal(a, 3, 1, 2);
    CHECK(same((duet_random_normal)(c, 3, 1, 2)), "random_normal");
    duet::random_truncated_normal(a, 3, 0, 1, -0.5, 2);
    CHECK(same((duet_random_truncated_normal)(c, 3, 0, 1, -0.5, 2)), "random_truncated_normal");
    duet::random_integers(a, 3, -5, 5);
    CHECK(same((duet_random_integers)(c, 3, -5, 5)), "random_integers");
    duet::random_bernoulli(a, 3, 0.25);
    CHECK(same((duet_random_bernoulli)(c, 3, 0.25)), "random_bernoulli");
    duet::random_sobol(a, 3, 5);
    CHECK(same((duet_random_sobol)(c, 3, 5)), "random_sobol");
    duet::noise_uniform(a, x, 3);
    CHECK(same((duet_noise_uniform)(c, x.get(), 3)), "noise_uniform");
    duet::noise_normal(a, x * 2, 3);
    CHECK(same((duet_noise_normal)(c, duet_mul(x.get(), 2), 3)), "noise_normal");
    duet::noise_logistic(a, x, 3);
    CHECK(same((duet_noise_logistic)(c, x.get(), 3)), "noise_logistic");
    duet::noise_ranged(a, x, 3, 1);
    CHECK(same((duet_noise_ranged)(c, x.get(), 3, 1)), "noise_ranged");
    duet::noise_bernoulli(a, duet::cast(0.5, duet::f32), 3);
    CHECK(same((duet_noise_bernoulli)(c, duet_cast(0.5, DUET_F32), 3)), "noise_bernoulli");
    duet::shuffle(a, x, 1, 3);
    CHECK(same((duet_shuffle)(c, x.get(), 1, 3)), "shuffle");
    duet::sequence(a, 0.5, 0.25);
    CHECK(same((duet_sequence)(c, 0.5, 0.25)), "sequence");

    matrix noisy, mixed;
    duet::noise_normal(noisy, x + 1, 5);
    CHECK(noisy.type() == duet::f32 && noisy.shape() == x.shape(), "noise in a new matrix");
    duet::shuffle(mixed, x, 0, 5);
    const auto sorted = [](const matrix &m) { return duet::sort(m.reshape(-1), 0); };
    CHECK(mixed.shape() == x.shape() && duet::item<bool>(duet::array_equal(sorted(mixed), sorted(x))),
          "shuffle in a new matrix");
    a = 0;
    duet::random_uniform(a.row(1), 1, 2, 3);
    duet::sequence(a.row(2), 1, 1);
    CHECK(a.read<float>()(1, 0) >= 2 && holds<float>(a.row(2), { 1, 2, 3, 4 }) && duet::item(a(0, 0)) == 0,
          "views as destinations");
    matrix square(duet::f64, 4, 4);
    duet::magic(square);
    CHECK(duet::item(duet::sum(square(2))) == 34 &&
              duet::item<bool>(duet::array_equal(square, matrix::magic(duet::f64, 4))),
          "magic");

    const matrix kernel = { 1.0, -2.0, 0.5 }, kernel2 = { { 1.0, 2.0 }, { 3.0, 4.0 }, { 5.0, 6.0 } },
                 v = { 3.0, 1.0, 4.0, 1.0, 5.0 }, image = matrix::arange(duet::f64, 0, 20).reshape(4, 5);
    for (const duet_overlap part : { duet::overlap_full, duet::overlap_same, duet::overlap_valid }) {
        const matrix t = duet::convmtx(kernel, 5, part), t2 = duet::convmtx2(kernel2, 4, 5, part);
        matrix to(t.type(), t.shape()), to2(t2.type(), t2.shape());
        duet::convmtx(to, kernel, part);
        duet::convmtx2(to2, kernel2, 4, 5, part);
        CHECK(duet::item<bool>(duet::array_equal(t, to)) && duet::item<bool>(duet::array_equal(t2, to2)),
              "convmtx in an existing matrix");
        CHECK(duet::item<bool>(duet::allclose(duet::matmul(t, v), duet::convolve(v, kernel, part))),
              "convmtx, part %d", part);
        CHECK(duet::item<bool>(duet::allclose(duet::matmul(t2, image.reshape(-1)),
                                              duet::convolve(image, kernel2, part).reshape(-1))),
              "convmtx2, part %d", part);
    }
    CHECK(duet::convmtx(kernel, 2, duet::overlap_valid).shape() == duet::shape(0, 2), "no results");
    CHECK(no_formulas(), "a formula leaked");
    tap_point("random numbers, noise, sequences, matrices of convolutions");
}

static void test_files()
{
    char folder[] = "/tmp/duet_hpp_XXXXXX";
    CHECK(mkdtemp(folder), "mkdtemp");
    const std::string npz = std::string(folder) + "/a.npz", mtx = std::string(folder) + "/a.mtx";
    const matrix x = { 1.0f, 2.0f }, y = { { 1.0, 2.5 }, { 3.0, 4.0 } };
    duet::save_npz(npz, { { "x", x }, { "y", y } });
    CHECK(duet::names_npz(npz) == std::vector<std::string>({ "x", "y" }), "names_npz");
    CHECK(holds<float>(matrix::load(npz, "x"), { 1, 2 }) &&
              holds<double>(matrix::load(npz, "y"), { 1, 2.5, 3, 4 }),
          "save_npz");
    std::map<std::string, matrix> map;
    map["a"] = x.clone();
    map["b"] = y + 1;
    duet::save_npz(npz, map);
    CHECK(duet::names_npz(npz) == std::vector<std::string>({ "a", "b" }) &&
              holds<double>(matrix::load(npz, "b"), { 2, 3.5, 4, 5 }),
          "save_npz of a map");
    y.save_market(mtx);
    std::FILE *stream = std::tmpfile(), *text = std::tmpfile();
    y.write_npy(stream);
    y.write_market(stream);
    y.print_octave(text);
    CHECK(std::ftell(text) > 3, "print_octave");
    std::rewind(stream);
    CHECK(duet::item<bool>(duet::array_equal(matrix::read_npy(stream), y)), "read_npy");
    CHECK(duet::item<bool>(duet::array_equal(matrix::read_market(stream), y)), "read_market");
    std::fclose(stream);
    std::fclose(text);
    const matrix back = matrix::load_market(mtx);
    CHECK(back.shape() == duet::shape(2, 2) && holds<double>(back, { 1, 2.5, 3, 4 }), "Matrix Market");
    const duet::result<matrix> none = duet::try_call([&] { return matrix::load_market("/no/such/file"); });
    CHECK(none.status() == DUET_IO_ERROR && names(none.text(), __LINE__ - 1), "%s", none.text());
    std::remove(npz.c_str());
    std::remove(mtx.c_str());
    std::remove(folder);
    tap_point("files");
}

/* The text that a function prints to a FILE. */
template <class P> static std::string printed(P &&print)
{
    char *text = nullptr;
    std::size_t n = 0;
    std::FILE *out = open_memstream(&text, &n);
    print(out);
    std::fclose(out);
    const std::string s(text, n);
    std::free(text);
    return s;
}

static void test_printing()
{
    matrix x = { 1.0f, 2.0f }, y(duet::f32, 2), empty;
    const duet::expr e = x * 2 + 1;
    std::ostringstream a, b, c, d, f, g;
    duet::print(a, x);
    CHECK(a.str() == printed([&](std::FILE *out) { duet::print(out, x); }) && a.str().find("[1. 2.]") == 0,
          "print: %s", a.str().c_str());
    duet::print_expr(b, e);
    CHECK(b.str() == printed([&](std::FILE *out) { duet::print_expr(out, e); }) &&
              b.str().find("duet_") != std::string::npos,
          "print_expr: %s", b.str().c_str());
    duet::explain(c, y, e);
    CHECK(c.str() == printed([&](std::FILE *out) { (void)(duet_explain)(out, y.get(), e.get()); }) &&
              !c.str().empty(),
          "explain: %s", c.str().c_str());
    CHECK(c.str() == printed([&](std::FILE *out) { duet::explain(out, empty, e); }) && empty.empty(),
          "explain with an empty matrix");
    duet::explain_all(d, { { y, e }, { empty, duet::sum(x) }, { x, 0 } });
    CHECK(!d.str().empty() && empty.empty() && holds<float>(y, { 0, 0 }) && holds<float>(x, { 1, 2 }),
          "explain_all computes nothing: %s", d.str().c_str());
    CHECK(printed([&](std::FILE *out) { duet::explain_all(out, { { y, e } }); }) != d.str(), "explain_all");
    y = e;
    CHECK(holds<float>(y, { 3, 5 }) && no_formulas(), "the formula was not evaluated before");
    duet::explain(c, y, x);
    duet::explain(c, y, 1);
    CHECK(no_formulas(), "a formula of explain leaked");
    duet::info(f);
    CHECK(f.str() == printed([](std::FILE *out) { duet::info(out); }) && !f.str().empty(), "info");
    std::ostringstream report;
    duet::memory_report(report);
    CHECK(report.str().find("largest matrices") != std::string::npos, "%s", report.str().c_str());
    CHECK(duet::live(g) == duet::live() && duet::live() >= 2 &&
              g.str() == printed([](std::FILE *out) { duet::live(out); }),
          "live: %s", g.str().c_str());
    std::ostringstream h, j;
    char text[] = "text", *pointer = text;
    duet::print(j, "a", pointer, text);
    CHECK(j.str() == "a\ntext\ntext\n", "texts: %s", j.str().c_str());
    duet::print(h, "x", x, "sum and mean", duet::sum(x), duet::mean(x), "a number", 5, "text");
    CHECK(h.str() == printed([&](std::FILE *out) {
              (void)duet_print(out, "x", x.get(), "sum and mean", duet_sum(x.get()), duet_mean(x.get()),
                               "a number", 5, "text");
          }) &&
              h.str() == printed([&](std::FILE *out) {
                  duet::print(out, "x", x, "sum and mean", duet::sum(x), duet::mean(x), "a number", 5,
                              std::string("text"));
              }),
          "print of several items: %s", h.str().c_str());
    const duet::outcome list = duet::try_call([&] { duet::print(h, "text", x, x + matrix(duet::f32, 3)); });
    CHECK(list.status() == DUET_BAD_SHAPE && names(list.text(), __LINE__ - 1), "%s", list.text());
    const auto [mean, at, whole] = duet::items<double, int, bool>(duet::mean(y), duet::argmax(y), 1);
    CHECK(mean == 4 && at == 1 && whole, "items: %g %d", mean, at);
    const duet::outcome items = duet::try_call([&] { duet::items<double, int>(duet::sum(x), x); });
    CHECK(items.status() == DUET_BAD_SHAPE && names(items.text(), __LINE__ - 1), "%s", items.text());
    const duet::outcome bad = duet::try_call([&] { duet::print_expr(b, x + matrix(duet::f32, 3)); });
    CHECK(bad.status() == DUET_BAD_SHAPE && names(bad.text(), __LINE__ - 1) && !b.fail(), "%s", bad.text());
    const duet::outcome other = duet::try_call([&] { duet::explain(c, empty, x + matrix(duet::f32, 3)); });
    CHECK(other.status() == DUET_BAD_SHAPE && names(other.text(), __LINE__ - 1), "%s", other.text());
    const matrix three(duet::f32, 3);
    const duet::outcome third = duet::try_call([&] { duet::explain_all(d, { { y, x }, { x, three } }); });
    CHECK(third.status() == DUET_BAD_SHAPE && names(third.text(), __LINE__ - 1), "%s", third.text());
    CHECK(no_formulas(), "a formula leaked");
    tap_point("printing");
}

static void test_settings()
{
    CHECK(std::strcmp(duet::version(), DUET_VERSION) == 0, "version");
    const duet_counts before = duet::stats();
    matrix x = matrix::ones(duet::f32, 10), y;
    {
        const duet::threads one(1);
        duet::matrix r = duet::matrix::ones(duet::f32, 3);
        r.resize({ 2, 2 });
        CHECK(holds<float>(r, { 1, 1, 1, 0 }) && r.valid_on(DUET_CPU), "resize, valid_on");
        duet::matrix top = r.row(0);
        CHECK(r.shares_memory(top) && !r.shares_memory(duet::matrix::ones(duet::f32, 2)), "shares_memory");
    }
    duet::set_threads(1);
    y = x + 1;
    duet::set_threads(0);
    CHECK(duet::stats().steps > before.steps, "stats");
    const std::size_t limit = duet::memory_of(DUET_CPU).limit;
    duet::memory_limit(DUET_CPU, std::size_t(1) << 40);
    CHECK(duet::memory_of(DUET_CPU).limit == std::size_t(1) << 40 && duet::memory_of(DUET_CPU).used > 0,
          "memory_of and memory_limit");
    duet::memory_limit(DUET_CPU, limit);
    duet::memory_trim();
    CHECK(duet::memory_of(DUET_CPU).cached == 0, "memory_trim");
    duet::auto_replay(false);
    duet::auto_replay(true);
    duet::arena_limit(std::size_t(64) << 20);
    duet::synchronize();
    duet::recover();
    const duet::outcome few = duet::try_call([] { duet::arena_limit(1); });
    CHECK(few.status() == DUET_BAD_ARGUMENT && names(few.text(), __LINE__ - 1), "%s", few.text());

    /* On a computer with a GPU these succeed, else they report that there is none. */
    const duet::result<void *> stream = duet::try_call([] { return duet::stream(); });
    const duet::result<const float *> r = duet::try_call([&] { return x.device_read<float>(); });
    const duet::result<void *> u = duet::try_call([&] { return y.device_update(); }),
                               o = duet::try_call([&] { return y.device_overwrite(); });
    const bool gpu(stream);
    CHECK(gpu || (stream.status() == DUET_NO_DEVICE && names(stream.text(), __LINE__ - 5)), "%s",
          stream.text());
    for (const duet::outcome *each :
         { static_cast<const duet::outcome *>(&r), static_cast<const duet::outcome *>(&u),
           static_cast<const duet::outcome *>(&o) })
        CHECK(bool(*each) == gpu && (gpu || each->status() == DUET_NO_DEVICE), "%s", each->text());
    const duet::result<const double *> wrong = duet::try_call([&] { return x.device_read<double>(); });
    CHECK(wrong.status() == DUET_BAD_TYPE && names(wrong.text(), __LINE__ - 1), "%s", wrong.text());
    tap_point("settings, statistics, the GPU");
}

/* ---- errors ---- */

static void test_try()
{
    matrix x = { 1.0f, 2.0f }, y(duet::f32, 3), empty;
    const duet::outcome bad = duet::try_set(y, x);
    const unsigned line = __LINE__ - 1;
    const std::string place = std::string(__FILE__) + ":" + std::to_string(line) + ": ";
    CHECK(!bad && bad.status() == DUET_BAD_SHAPE, "status %d", bad.status());
    CHECK(std::strncmp(bad.text(), place.c_str(), place.size()) == 0, "%s", bad.text());
    const duet_status other = duet_set_on(DUET_CPU, nullptr, 1); /* does not change the text */
    CHECK(other == DUET_BAD_ARGUMENT && std::strstr(bad.text(), "f32[2]"), "%s", bad.text());
    CHECK(duet::try_set(x, x + 1) && holds<float>(x, { 2, 3 }), "try_set");
    CHECK(duet::try_set(empty, x + 1) && holds<float>(empty, { 3, 4 }), "try_set of an empty matrix");
    matrix none;
    CHECK(!duet::try_set(none, x + y) && none.empty(), "a failed try_set of an empty matrix");
    duet::result<matrix> r = duet::try_eval(x * 2);
    CHECK(r && holds<float>(*r, { 4, 6 }) && r->rank() == 1 && std::strcmp(r.text(), "success") == 0,
          "try_eval");
    duet::result<matrix> failed = duet::try_eval(x + y);
    CHECK(!failed && failed.status() == DUET_BAD_SHAPE && failed.value().empty(), "a failed try_eval");
    CHECK(duet::try_item(duet::sum(x)).value() == 5, "try_item");
    CHECK(duet::try_item<int>(x).status() == DUET_BAD_SHAPE, "try_item of two elements");
    CHECK(duet::try_set_all({ { x, 1 }, { y, x } }).status() == DUET_BAD_SHAPE && holds<float>(x, { 2, 3 }),
          "set_all");
    CHECK(bool(duet::try_set_all({ { x, 1 } })), "try_set_all");
    CHECK(duet::try_new(duet::f32, { 2, -1 }).status() == DUET_BAD_SHAPE, "try_new");
    CHECK(duet::try_new(duet::f32, { 2, 1 }).value().count() == 2, "try_new");
    matrix two(duet::f32, 2, 2), late;
    x = matrix(duet::f32, { 2, 3 });
    CHECK(duet::try_set(two.row(0), x) && holds<float>(two, { 2, 3, 0, 0 }), "try_set of a view");
    CHECK(duet::try_set_on(DUET_CPU, two.row(1), x) && holds<float>(two, { 2, 3, 2, 3 }), "try_set_on");
    CHECK(duet::try_set_math(DUET_MATH_STRICT, late, x + 1) && holds<float>(late, { 3, 4 }), "try_set_math");
    const duet::outcome on = duet::try_set_on(DUET_CPU, y, x);
    CHECK(on.status() == DUET_BAD_SHAPE && names(on.text(), __LINE__ - 1), "%s", on.text());
    const duet::outcome in = duet::try_set_math(DUET_MATH_STRICT, none, x + y);
    CHECK(in.status() == DUET_BAD_SHAPE && names(in.text(), __LINE__ - 1) && none.empty(), "%s", in.text());
    CHECK(duet::try_set_on(static_cast<duet_place>(3), x, x).status() == DUET_BAD_ARGUMENT, "a bad place");

    const duet::outcome fine = duet::try_call([&] { duet::sequence(x, 1, 1); });
    CHECK(fine && std::strcmp(fine.text(), "success") == 0 && holds<float>(x, { 1, 2 }), "try_call");
    const duet::result<matrix> row = duet::try_call([&] { return two.row(5); });
    CHECK(row.status() == DUET_BAD_ARGUMENT && names(row.text(), __LINE__ - 1), "%s", row.text());
    CHECK(duet::try_call([&]() -> matrix & { return x.set(x + 1); }) && holds<float>(x, { 2, 3 }),
          "try_call of a reference");
    CHECK(duet::try_call([] { return 3; }).value() == 3, "try_call of a number");
    const duet::outcome first = duet::try_call([&] {
        const duet::outcome inner = duet::try_call([&] { x = x + y; });
        CHECK(inner.status() == DUET_BAD_SHAPE, "an inner try_call");
        (void)two.row(7);
        (void)matrix::load("/no/such/file");
    });
    CHECK(first.status() == DUET_BAD_ARGUMENT && names(first.text(), __LINE__ - 3), "%s", first.text());
    CHECK(no_formulas(), "a formula leaked");
    tap_point("statements that return a status");
}

#ifdef __cpp_exceptions
/* Does the statement throw this status at its own line? */
#define THROWS(expected, statement)                                                                          \
    do {                                                                                                     \
        bool thrown = false;                                                                                 \
        try {                                                                                                \
            statement;                                                                                       \
        } catch (const duet::error &e) {                                                                     \
            thrown = true;                                                                                   \
            const std::string place = std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": ";         \
            CHECK(e.status() == (expected), "%s: %d, %s", #statement, e.status(), e.what());                 \
            CHECK(e.line() == __LINE__ && std::strcmp(e.file(), __FILE__) == 0, "%s: line %u, %s",           \
                  #statement, e.line(), e.what());                                                           \
            CHECK(std::strncmp(e.what(), place.c_str(), place.size()) == 0, "%s: %s", #statement, e.what()); \
        }                                                                                                    \
        CHECK(thrown, "%s does not throw", #statement);                                                      \
        CHECK(no_formulas(), "%s leaks a formula", #statement);                                              \
    } while (0)

static void test_errors()
{
    matrix x = { 1.0f, 2.0f }, y(duet::f32, 3), m(duet::f32, 2, 3), i = { 1, 2 };
    const matrix none;
    THROWS(DUET_BAD_SHAPE, y = x + y);
    THROWS(DUET_BAD_SHAPE, y.set(x));
    THROWS(DUET_BAD_SHAPE, y += x);
    THROWS(DUET_BAD_SHAPE, y -= x);
    THROWS(DUET_BAD_SHAPE, y *= x);
    THROWS(DUET_BAD_SHAPE, y /= x);
    THROWS(DUET_BAD_SHAPE, const matrix z = x + y);
    THROWS(DUET_BAD_SHAPE, (void)duet::eval(x + y));
    THROWS(DUET_BAD_SHAPE, duet::item(x));
    THROWS(DUET_BAD_SHAPE, duet::set_all({ { y, x } }));
    THROWS(DUET_BAD_SHAPE, x = duet::matmul(m, x));
    THROWS(DUET_BAD_SHAPE, x = x.reshape(3));
    THROWS(DUET_BAD_SHAPE, x = x.permute(1, 0));
    THROWS(DUET_BAD_ARGUMENT, x = x(5));
    THROWS(DUET_BAD_TYPE, i = x + 0);
    THROWS(DUET_BAD_ARGUMENT, x = none + 1);
    THROWS(DUET_BAD_ARGUMENT, (void)none.clone());
    THROWS(DUET_BAD_ARGUMENT, x = x + duet::item(matrix::full(duet::f32, 1, 1)) + m.row(9));
    THROWS(DUET_BAD_SHAPE, (void)matrix(duet::f32, 2, -1));
    THROWS(DUET_BAD_SHAPE, (void)matrix(duet::f32, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    THROWS(DUET_BAD_SHAPE, (void)matrix::zeros(duet::f32, -1));
    THROWS(DUET_BAD_ARGUMENT, (void)matrix::arange(duet::f32, 0, 1, 0));
    THROWS(DUET_BAD_SHAPE, (void)matrix({ { 1, 2 }, { 3 } }));
    THROWS(DUET_BAD_SHAPE, (void)matrix(std::vector<int>{ 1, 2, 3 }, { 2, 2 }));
    THROWS(DUET_BAD_TYPE, x.read<double>());
    THROWS(DUET_BAD_TYPE, x.update<int>());
    THROWS(DUET_BAD_ARGUMENT, none.read<double>());
    THROWS(DUET_BAD_ARGUMENT, m.transposed().read<float>().data());
    THROWS(DUET_BAD_ARGUMENT, (void)m.row(2));
    THROWS(DUET_BAD_ARGUMENT, (void)m.indexed(duet::all, 3));
    THROWS(DUET_BAD_SHAPE, (void)m.reshaped(4));
    THROWS(DUET_BAD_SHAPE, (void)m.permuted(0));
    THROWS(DUET_BAD_SHAPE, (void)m.split(2, 2));
    THROWS(DUET_IO_ERROR, (void)matrix::load("/no/such/file.npy"));
    THROWS(DUET_BAD_ARGUMENT, duet::recording().replay());
    THROWS(DUET_BAD_TYPE, duet::random_uniform(i, 1));
    float memory[4] = {};
    THROWS(DUET_BAD_SHAPE, y.set_on(DUET_CPU, x));
    THROWS(DUET_BAD_SHAPE, y.set_math(DUET_MATH_TF32, x));
    THROWS(DUET_BAD_SHAPE, matrix().set_on(DUET_CPU, x + y));
    THROWS(DUET_BAD_ARGUMENT, y.set_on(static_cast<duet_place>(3), y));
    THROWS(DUET_BAD_SHAPE, x = duet::concat(1, x, y));
    THROWS(DUET_BAD_SHAPE, x = duet::stack(0, { x, y }));
    THROWS(DUET_BAD_ARGUMENT, x = duet::tile(x, -1));
    THROWS(DUET_BAD_ARGUMENT, x = duet::tile(x, { 1, 1, 1, 1, 1, 1, 1, 1, 1 }));
    THROWS(DUET_BAD_ARGUMENT, x = duet::repeat(x, -1, 0));
    THROWS(DUET_BAD_SHAPE, x = duet::roll(x, 1, 2));
    THROWS(DUET_BAD_SHAPE, x = duet::im2col(x, {}));
    THROWS(DUET_BAD_SHAPE, duet::magic(m));
    THROWS(DUET_BAD_TYPE, (void)matrix::magic(duet::u8, 16));
    THROWS(DUET_BAD_ARGUMENT, duet::random_truncated_normal(x, 1, 0, 1, 2, 1));
    THROWS(DUET_BAD_SHAPE, duet::noise_uniform(y, x, 1));
    THROWS(DUET_BAD_SHAPE, duet::noise_normal(y, x + 1, 1));
    THROWS(DUET_BAD_TYPE, duet::noise_logistic(i, i, 1));
    THROWS(DUET_BAD_SHAPE, duet::noise_ranged(y, x, 1, 1));
    THROWS(DUET_BAD_TYPE, duet::noise_bernoulli(i, i, 1));
    THROWS(DUET_BAD_SHAPE, duet::sgd(y, x, 0.1));
    THROWS(DUET_BAD_ARGUMENT, duet::adam(y, y, y, y, 0.1, 1));
    THROWS(DUET_BAD_ARGUMENT, duet::adamw(y, y, y, y, 0.1, 1));
    THROWS(DUET_BAD_ARGUMENT, duet::rmsprop(y, y, y, 0.1));
    THROWS(DUET_BAD_SHAPE, duet::adagrad(y, duet::clip_norm(y, y, 1), x, 0.1));
    THROWS(DUET_BAD_SHAPE, x = duet::clip_norm(y, y, 1));
    THROWS(DUET_BAD_ARGUMENT, x = duet::global_norm({}));
    THROWS(DUET_BAD_SHAPE, duet::shuffle(y, x, 0, 1));
    THROWS(DUET_BAD_TYPE, duet::sequence(i, 0.5, 1));
    THROWS(DUET_BAD_SHAPE, duet::convmtx(m, m));
    THROWS(DUET_BAD_SHAPE, (void)duet::convmtx(m, 4));
    THROWS(DUET_BAD_SHAPE, (void)duet::convmtx(x, -4));
    THROWS(DUET_BAD_SHAPE, (void)duet::convmtx(x, INT64_MAX));
    THROWS(DUET_BAD_SHAPE, duet::convmtx2(m, m, 2, 2));
    THROWS(DUET_BAD_SHAPE, (void)duet::convmtx2(x, 2, 2));
    THROWS(DUET_BAD_TYPE, x.to_array(static_cast<double *>(nullptr)));
    THROWS(DUET_BAD_ARGUMENT, x.to_array(static_cast<float *>(nullptr)));
    THROWS(DUET_BAD_TYPE, x.to_vector<int>());
    THROWS(DUET_BAD_ARGUMENT, none.to_vector<float>());
    THROWS(DUET_BAD_TYPE, x.device_update<double>());
    THROWS(DUET_BAD_TYPE, x.device_overwrite<int>());
    THROWS(DUET_BAD_ARGUMENT, (void)matrix::wrap_columns<float>(nullptr, { 2, 2 }));
    THROWS(DUET_BAD_ARGUMENT, (void)matrix::wrap_strided(memory, { 2, 2 }, 1));
    THROWS(DUET_BAD_ARGUMENT, matrix::wrap_strided(memory, { 2, 2 }, { 1, 1 }) = 1);
    THROWS(DUET_BAD_SHAPE, (void)matrix::ones(duet::f32, -1));
    THROWS(DUET_BAD_TYPE, (void)matrix::full(duet::i32, 0.5, 1));
    THROWS(DUET_IO_ERROR, (void)matrix::load_market("/no/such/file"));
    THROWS(DUET_BAD_SHAPE, x.save_market("/tmp/never"));
    std::FILE *stream = std::tmpfile();
    THROWS(DUET_END_OF_FILE, (void)matrix::read_npy(stream));
    THROWS(DUET_END_OF_FILE, (void)matrix::read_market(stream));
    std::fclose(stream);
    THROWS(DUET_BAD_ARGUMENT, matrix same = x.reshaped(-1); x.resize({ 5 }));
    THROWS(DUET_BAD_ARGUMENT, duet::save_npz("/tmp/never", { { "x", x }, { "x", x } }));
    THROWS(DUET_IO_ERROR, (void)duet::names_npz("/no/such/file"));
    THROWS(DUET_BAD_ARGUMENT, duet::load_limits(0, -1));
    duet::load_limits(0);
    THROWS(DUET_BAD_ARGUMENT, duet::print(stdout, none));
    THROWS(DUET_BAD_SHAPE, duet::print_expr(stdout, x + y));
    THROWS(DUET_BAD_SHAPE, duet::explain(stdout, y, x));
    THROWS(DUET_BAD_SHAPE, duet::explain_all(stdout, { { y, x } }));
    THROWS(DUET_BAD_ARGUMENT, duet::info(static_cast<std::FILE *>(nullptr)); duet::set_threads(-1));
    THROWS(DUET_BAD_ARGUMENT, duet::memory_limit(DUET_AUTO, 1));
    const duet::expr built = x + y;
    try {
        x = built;
        CHECK(false, "no error");
    } catch (const std::runtime_error &e) { /* what() names the line that built the formula */
        const std::string place = std::string(__FILE__) + ":" + std::to_string(__LINE__ - 5) + ": ";
        CHECK(std::strncmp(e.what(), place.c_str(), place.size()) == 0, "%s", e.what());
    }
    const auto thrower = []() -> matrix { throw 7; };
    for (int n = 0; n < 3; n++) {
        try {
            y = duet::exp(y * 2) + thrower();
        } catch (int) {
        }
        CHECK(no_formulas(), "a formula that was not finished leaked");
    }
    tap_point("exceptions");
}
#else
static duet_status seen;
static void test_errors()
{
    duet::error_hook = [](const duet::error &e) { seen = e.status(); };
    matrix x = { 1.0f, 2.0f }, y(duet::f32, 3);
    y = x + y;
    CHECK(seen == DUET_BAD_SHAPE && holds<float>(y, { 0, 0, 0 }), "the hook of an assignment");
    CHECK(x.row(9).empty() && seen == DUET_BAD_ARGUMENT, "the hook of a view");
    CHECK(matrix(duet::f32, -1).empty() && seen == DUET_BAD_SHAPE, "the hook of a constructor");
    CHECK(x.read<double>().size() == 0 && seen == DUET_BAD_TYPE, "the hook of an access");
    CHECK(duet::item(x) == 0 && seen == DUET_BAD_SHAPE, "the hook of item");
    CHECK(matrix({ { 1, 2 }, { 3 } }).empty() && no_formulas(), "rows of different sizes");
    tap_point("the hook in place of exceptions");
}
#endif

/* ---- blocks and the rest ---- */

static void test_blocks()
{
    matrix x = matrix::ones(duet::f32, 64, 64), y(duet::f32, 64, 64);
    double seconds = -1;
    {
        const duet::timed block(seconds);
        y = duet::matmul(x, x);
    }
    CHECK(seconds >= 0 && seconds < 60, "timed: %g", seconds);
    {
        const duet::on_cpu block;
        const duet::math mode(DUET_MATH_TF32);
        y = x + 1;
    }
    const duet_status gpu = [&] {
        const duet::on_gpu block;
        const duet::on inner(DUET_CPU);
        return duet::try_set(y, x + 2).status();
    }();
    CHECK(gpu == DUET_OK && y.read<float>()[0] == 3, "the innermost block decides");
    std::FILE *out = std::tmpfile();
    {
        const duet::explaining block(out);
        y = x + 3;
    }
    CHECK(std::ftell(out) > 0 && y.read<float>()[0] == 3, "explaining");
    std::fclose(out);

    matrix v = { 1.0f, 2.0f };
    duet::recording step = duet::record([&] { v = v * 2; });
    duet::recording other(std::move(step)), third;
    third = std::move(other);
    for (int i = 0; i < 2; i++) third.replay();
    CHECK(holds<float>(v, { 8, 16 }) && third.get() && !step.get(), "a recording"); // NOLINT: step is empty
#ifdef __cpp_exceptions
    try {
        const duet::recording never = duet::record([&] {
            v = v + 1;
            throw 1;
        });
    } catch (int) {
    }
#endif
    CHECK((duet::record([&] { v = v + 1; }).get()), "a recording after one that failed");
    tap_point("blocks and recordings");
}

static void test_rest()
{
    const matrix a = { { 2.0, 1.0 }, { 1.0, 3.0 } };
    const auto same = [&](const duet::expr &product) { return duet::item<bool>(duet::allclose(product, a)); };
    auto [q, r] = duet::qr(a);
    auto [u, s, vt] = duet::svd(a);
    auto [l, up, p] = duet::lu(a);
    const duet::eigh_result e = duet::eigh(a);
    CHECK(same(duet::matmul(q, r)) && same(duet::matmul(u * s, vt)), "qr, svd");
    CHECK(p.type() == duet::i64 && same(duet::matmul(l, up)), "lu");
    CHECK(same(duet::matmul(e.v * e.w, e.v.T())), "eigh");
    const duet::slogdet_result d = duet::slogdet(a);
    CHECK(std::fabs(std::exp(duet::item(d.logdet)) - 5) < 1e-12 && duet::item(d.sign) == 1, "slogdet");

    const matrix v = { 3, 1, 3, 2 };
    CHECK(holds<int>(duet::masked(v, v > 1), { 3, 3, 2 }), "masked");
    CHECK(holds<int64_t>(duet::nonzero(v == 3), { 0, 2 }), "nonzero");
    const duet::unique_result un = duet::unique(v);
    CHECK(holds<int>(un.values, { 1, 2, 3 }) && holds<int64_t>(un.counts, { 1, 1, 2 }), "unique");
    CHECK(holds<int64_t>(un.inverse, { 2, 0, 2, 1 }), "the inverse of unique");
    const duet::unique_result rows = duet::unique(duet::reshape(duet::concat(0, v, v), 4, 2), 0);
    CHECK(holds<int>(rows.values, { 3, 1, 3, 2 }) && rows.values.rank() == 2, "unique along an axis");
    CHECK(holds<int64_t>(rows.counts, { 2, 2 }) && holds<int64_t>(rows.inverse, { 0, 1, 0, 1 }),
          "counts and inverse along an axis");

    matrix x(duet::f32, 1000), n(duet::i32, 9);
    duet::random_uniform(x, 1, 2, 3);
    CHECK(duet::item<bool>(duet::all((x >= 2) & (x < 3))), "random_uniform");
    duet::random_normal(x, 1);
    CHECK(std::fabs(duet::item(duet::mean(x))) < 0.2, "random_normal");
    duet::random_integers(n, 1, 0, 2);
    duet::random_bernoulli(x, 1, 0.5);
    CHECK(duet::item<int>(duet::max(n)) == 1 && duet::item(duet::max(x)) == 1,
          "random_integers, random_bernoulli");
    duet::random_permutation(n, 1);
    CHECK(duet::item<int>(duet::sum(n)) == 36, "random_permutation");

    std::ostringstream out;
    out << v << ' ' << v + 1;
    CHECK(out.str().find("[3 1 3 2]") == 0 && out.str().find("[4 2 4 3]") != std::string::npos, "%s",
          out.str().c_str());
    char path[] = "/tmp/duet_hpp_XXXXXX";
    const int fd = mkstemp(path);
    v.save(path);
    CHECK(fd >= 0 && holds<int>(matrix::load(path), { 3, 1, 3, 2 }), "load and save");
    matrix again = v + 1;
    again.load_into(path);
    CHECK(holds<int>(again, { 3, 1, 3, 2 }), "load_into");
    const duet_named named = { "v", v.get() };
    CHECK(duet_save_npz(path, &named, 1) == DUET_OK && holds<int>(matrix::load(path, "v"), { 3, 1, 3, 2 }),
          "npz");
    std::remove(path);
    tap_point("factorisations, selections, random numbers, files, printing");
}

/* Does f fail, with this text? */
template <class F> static bool refuses(F &&f, const char *text)
{
    const auto r = duet::try_call(f);
    const bool is = r.status() != DUET_OK && std::strstr(r.text(), text);
    CHECK(is, "\"%s\": %s", text, r.text());
    return is;
}

static void test_foreign()
{
    static const double numbers[] = { 1, 2, 3, 4, 5, 6 };
    matrix c = matrix::wrap_const(numbers, { 2, 3 }),
           columns = matrix::wrap_const_strided(numbers, { 3, 2 }, { 1, 3 });
    CHECK(duet::item(duet::sum(c)) == 21 && duet::item(duet::sum(columns(2))) == 9, "reading");
    refuses([&] { c += 1; }, "must not be written");
    refuses([&] { columns.row(0) = 1; }, "must not be written");
    refuses([&] { (void)matrix::wrap_const_strided(numbers, { 3, 2 }, { 1 }); }, "one stride for each axis");
    refuses([&] { (void)matrix::wrap_device(static_cast<float *>(nullptr), { 2 }); }, "must not be NULL");
    refuses([&] { (void)matrix::wrap_device_strided(static_cast<float *>(nullptr), { 2 }, { 1 }); },
            "must not be NULL");
    matrix x = 2 * c;
    duet_dlpack_options writable = {};
    writable.writable = 1;
    duet::tensor t = duet::to_dlpack(x, writable);
    CHECK(t && t->dl_tensor.ndim == 2 && t->flags == 0, "a tensor");
    matrix y = duet::from_dlpack(std::move(t));
    y += 1;
    CHECK(!t && duet::item(duet::max(x)) == 13, "the matrix shares the elements");
    duet::legacy_tensor old = duet::to_dlpack_legacy(x);
    matrix z = duet::from_dlpack(std::move(old));
    CHECK(!old && duet::item(duet::min(z)) == 3, "a legacy tensor");
    t = duet::to_dlpack(c);
    t->dl_tensor.dtype.lanes = 2;
    t->deleter = [](DLManagedTensorVersioned *) {};
    auto *kept = t.get();
    refuses([&] { (void)duet::from_dlpack(std::move(t)); }, "2 lanes");
    CHECK(t.get() == kept, "a refused tensor stays the caller's");
    duet::tensor again = duet::to_dlpack(c); /* ends the changed one, whose deleter did nothing */
    kept->deleter = again->deleter;
    refuses([&] { (void)duet::to_dlpack(c, writable); }, "must not be written");
    tap_point("constant memory, memory of a GPU, DLPack");
}

/* duet_live names the line that made a matrix. */
static void test_live()
{
    const matrix here(duet::f32, 5, 7), clone = here.clone(), formula = here + 1;
    const unsigned line = __LINE__ - 1;
    char *text = nullptr;
    std::size_t n = 0;
    std::FILE *out = open_memstream(&text, &n);
    (void)duet_live(out);
    std::fclose(out);
    const std::string place = std::string(__FILE__) + ":" + std::to_string(line);
    const char *first = std::strstr(text, place.c_str()),
               *second = first ? std::strstr(first + 1, place.c_str()) : first;
    CHECK(first && second && std::strstr(second + 1, place.c_str()), "%s", text);
    std::free(text);
    tap_point("duet_live names lines");
}

/* Sparse matrices: each function of the class and each formula. */
static void test_sparse()
{
    using duet::matrix;
    using duet::sparse;
    const matrix d = { { 1.0, 0.0 }, { 2.0, 3.0 } }, x = { 1.0, 2.0 };
    sparse s(d), t;
    t = s.clone();
    CHECK(s.rows() == 2 && s.columns() == 2 && s.count() == 3 && s.type() == duet::f64 && s.pattern(),
          "sizes");
    CHECK(duet::item(duet::sum(duet::matmul(s, x))) == 9, "matmul");
    CHECK(duet::item(duet::sum(duet::transposed_matmul(s, x))) == 11, "transposed_matmul");
    CHECK(duet::item(duet::sum(duet::adjoint_matmul(s, x))) == 11, "adjoint_matmul");
    CHECK(duet::item(duet::sum(s.to_dense() - d)) == 0, "to_dense");
    CHECK(duet::item(duet::sum(duet::sddmm(s, d, d))) == 1 + 8 + 9, "sddmm");
    CHECK(duet::item(duet::sum(duet::take(s, d + 1))) == 9, "take");
    CHECK(duet::item(duet::max(duet::sum(s, 0))) == 3 && duet::item(duet::max(duet::sum(s, 1))) == 5, "sum");
    duet::triangle_options lower;
    lower.lower = 1;
    CHECK(duet::item(duet::sum(duet::solve_triangular(s, x, lower))) == 1, "solve_triangular");
    s.set_values(s.values() * 2);
    CHECK(duet::item(duet::sum(s.values())) == 12 && duet::item(duet::sum(t.values())) == 6, "values");
    const matrix g = duet::grad(duet::sum(duet::matmul(s, x)), s.values());
    CHECK(duet::item(duet::sum(g)) == 4, "the gradient with respect to values");
    const sparse a = add(s, t), p = product(s, t), m = multiply(s, t), e = s.with_values(s.values() + 1),
                 q = s.transposed(), r = s.slice(1, 2);
    CHECK(duet::item(duet::sum(a.values())) == 18 && duet::item(duet::sum(m.values())) == 28,
          "add, multiply");
    CHECK(duet::item(duet::sum(p.to_dense())) == 2 + 4 + 12 + 18, "product");
    CHECK(duet::item(duet::sum(e.values())) == 15 && q.count() == 3 && r.rows() == 1 && r.count() == 2,
          "others");
    const sparse::lists coo = s.to_coo(), csr = s.to_csr();
    const sparse b = sparse::from_coo(2, 2, coo.first, coo.column, coo.values),
                 c = sparse::from_csr(2, 2, csr.first, csr.column, csr.values);
    CHECK(duet::item(duet::sum(b.to_dense() - c.to_dense())) == 0 && c.count() == 3, "lists");
    const char *path = "test_hpp_sparse.mtx";
    c.save_market(path);
    CHECK(sparse::load_market(path).count() == 3, "files");
    std::FILE *f = std::fopen(path, "w+");
    c.write_market(f);
    std::rewind(f);
    CHECK(sparse::read_market(f).count() == 3, "streams");
    std::fclose(f);
    std::remove(path);
#ifdef __cpp_exceptions
    THROWS(DUET_BAD_SHAPE, (void)add(s, r));
#endif
    const duet::result<matrix> solved = duet::try_eval(duet::solve(s, x));
    CHECK(solved.status() == DUET_OK || solved.status() == DUET_UNSUPPORTED, "solve");
    tap_point("sparse matrices");
}

/* Groups of parts of the CPU: each function of the class, and how matrices lie on them. */
static void test_groups()
{
    const duet::on_cpu parts_of_the_cpu;
    duet::group g = duet::group::local(2), other;
    CHECK(g.ranks() == 2 && g.rank() == 0 && g.near() == 2 && !g.empty(), "a group of 2");
    CHECK(other.empty() && other.ranks() == 0 && other.near() == 0, "an empty group");
    matrix x = g.split(duet::f32, 0, 5, 3), w = g.replicated(duet::f32, 3, 2), y, ordinary = w.clone();
    CHECK(x.shape() == duet::shape(5, 3) && x.split_axis() == 0 && x.group_of() == g.get(), "split");
    CHECK(w.shape() == duet::shape(3, 2) && w.split_axis() == -1 && w.group_of() == g.get(), "replicated");
    CHECK(g.split(duet::f64, 1, duet::shape(2, 4)).split_axis() == 1, "a shape as an argument");
    const matrix::split_range first = x.split_part(0), second = x.split_part(1), all = w.split_part(1);
    CHECK(first.first == 0 && first.count == 3 && second.first == 3 && second.count == 2, "parts of x");
    CHECK(all.first == 0 && all.count == 6, "a replicated matrix has no parts");
    x = 1;
    w = 0.5;
    y = duet::matmul(x, w) + 1;
    CHECK(y.split_axis() == 0 && y.group_of() == g.get() && duet::item(duet::sum(y)) == 25, "a statement");
    CHECK(holds<float>(y, { 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5 }), "reading gathers");
    matrix total(duet::f32, 2);
    total = duet::sum(y, 0);
    CHECK(holds<float>(total, { 12.5, 12.5 }) && !total.group_of() && total.split_axis() == -1,
          "an ordinary matrix");
    g.timeout(30);
    std::ostringstream text;
    g.info(text);
    CHECK(text.str().find("CPU") != std::string::npos, "%s", text.str().c_str());
    refuses([&] { (void)duet::group::local(-1); }, "rank");
    refuses([&] { (void)g.split(duet::f32, 2, 5, 3); }, "axis");
    refuses([&] { (void)total.split_part(0); }, "group");
    refuses([&] { g.timeout(0); }, "seconds");
    refuses([&] { (void)other.replicated(duet::f32, 2); }, "NULL");
    other = std::move(g);
    CHECK(g.empty() && other.get() == x.group_of(), "a moved group");
    duet::group alone(std::move(other));
    alone = duet::group(); /* ends when the last of its matrices is freed */
    CHECK(duet::item(duet::sum(x)) == 15, "a matrix keeps its group");
    tap_point("groups");
}

int main()
{
    const int64_t before = duet_live(nullptr);
    test_constructors();
    test_moves();
    test_assignment();
    test_elements();
    test_views();
    test_formulas();
    test_lifetime();
    test_rows();
    test_arrange();
    test_optimizers();
    test_sparse();
    test_groups();
    test_statements();
    test_files();
    test_printing();
    test_settings();
    test_try();
    test_errors();
    test_blocks();
    test_rest();
    test_foreign();
    test_live();
    const int64_t after = duet_live(nullptr);
    CHECK(after == before && no_formulas(), "%lld matrices are live", static_cast<long long>(after));
    tap_point("no matrix and no formula leaks");
    return tap_end();
}
