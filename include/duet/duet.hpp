/* duet.hpp - Duet for C++17 and later: matrices that free themselves, formulas with operators, errors as
 * exceptions. It contains no code of its own besides calls of the C functions in duet.h.
 *
 *     duet::matrix x = { 1.0f, 2.0f, 3.0f }, y = duet::matrix::ones(duet::f32, 3);
 *     y = 3.3 * x + y;                        // one pass over memory, as duet_set
 *     duet::matrix z = duet::exp(-y);         // a new matrix, as duet_eval
 *     std::cout << z << duet::item(duet::sum(z)) << '\n';
 *
 *     duet::matrix  A matrix, which its destructor frees. It can be moved but not copied; clone() copies
 *                   the elements. A matrix without elements of its own, duet::matrix(), is empty.
 *     duet::expr    A formula that is not yet computed. Operators make it from matrices, numbers and
 *                   formulas.
 *
 * Lifetime of formulas. A formula is evaluated once: by an assignment, by duet::eval or by another
 * statement. If it is an operand of another formula, it becomes a part of that formula. The destructor of
 * an expr that was neither evaluated nor an operand drops the formula. So a formula never leaks, also when
 * an exception is thrown while a longer formula is built. An expr can be moved but not copied; pass it to
 * functions as `const duet::expr &`. duet::hold makes a formula that can be evaluated any number of times.
 * A formula refers to its matrices: do not free or move them before it is evaluated. It belongs to the
 * thread that built it.
 *
 * Assignment. y = e evaluates e into the elements of y, as duet_set; the shape must fit. If y is empty, a
 * new matrix is made. If y is a view, the elements of the other matrix change: x.row(0) = e.
 * y = std::move(x) and y = f(), where f returns a matrix, move a matrix instead. y = x with two matrices
 * does not compile: write y.set(x) to copy the elements into y, or y = x.clone() for a new matrix.
 *
 * Operators. Comparisons give formulas of bool. & | ^ ~ are the bitwise operators, which are the logical
 * ones for bool. && || ! are not overloaded: overloads of them evaluate both sides, and `if (x && y)` must
 * not compile by accident.
 *
 * Errors. A function that fails throws duet::error, which has the status, the file and the line of the
 * call. Building a formula does not throw: an error in it is thrown when it is evaluated. duet::try_eval
 * and duet::try_set return the status instead, and duet::try_call does so for any other function. Without
 * exceptions (-fno-exceptions) duet::error_hook is called in place of a throw.
 *
 * Each function of the C interface has a form here, and its comment in the C header applies to it too. The
 * comments below describe only what differs. */
#ifndef DUET_HPP
#define DUET_HPP

#if __cplusplus < 201703L
#error "duet.hpp needs C++17 or later (-std=c++17)"
#endif
#include <atomic>
#include <cmath> /* removes the macros isnan, isinf, isfinite */
#include <complex>
#include <cstdlib>
#include <cstring>
#include <duet/duet.h>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <ostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if defined __has_include && __cplusplus >= 202002L
#if __has_include(<source_location>)
#include <source_location>
#endif
#endif

namespace duet
{
#ifndef __cpp_exceptions
/* so that a program with and without exceptions does not mix functions of the same name */
inline namespace without_exceptions
{
#endif

/* ---- types, places in the source, errors ------------------------------------------------------ */

using dtype = duet_dtype;
inline constexpr dtype f16 = DUET_F16, bf16 = DUET_BF16, f32 = DUET_F32, f64 = DUET_F64, c64 = DUET_C64,
                       c128 = DUET_C128, boolean = DUET_BOOL, i8 = DUET_I8, i16 = DUET_I16, i32 = DUET_I32,
                       i64 = DUET_I64, u8 = DUET_U8, u16 = DUET_U16, u32 = DUET_U32, u64 = DUET_U64;

inline constexpr double pi = 3.14159265358979323846;

/* The bits of elements of f16 and bf16. duet::cast converts them to f32. */
enum class f16_bits : uint16_t {};
enum class bf16_bits : uint16_t {};

/* A line of the source. It is a default argument: the compiler fills in the line of the call. */
struct location {
    const char *file;
    unsigned line;
    constexpr location(const char *file_, unsigned line_) noexcept : file(file_), line(line_) {}
#ifdef __cpp_lib_source_location
    constexpr location(const std::source_location &s) noexcept : file(s.file_name()), line(s.line()) {}
#endif
    static constexpr location here(const char *f = __builtin_FILE(), unsigned n = __builtin_LINE()) noexcept
    {
        return { f, n };
    }
};

class error : public std::runtime_error
{
    duet_status s;
    location w;

  public:
    error(duet_status status, const std::string &text, location where)
        : std::runtime_error(text), s(status), w(where)
    {
    }
    duet_status status() const noexcept { return s; }
    const char *file() const noexcept { return w.file; } /* of the call that failed */
    unsigned line() const noexcept { return w.line; }
};

#ifndef __cpp_exceptions
/* Is called in place of a throw. By default it prints the error and aborts. If your function returns,
 * the call that failed returns an empty matrix, a 0 or nothing, and leaves its destination unchanged. */
inline void (*error_hook)(const error &) = [](const error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::abort();
};
#endif

/* What a statement returns that does not throw: the status, and the text of an error. */
class [[nodiscard]] outcome
{
    duet_status s;
    std::unique_ptr<char, void (*)(void *)> copy{ nullptr, std::free };

  public:
    explicit outcome(duet_status status) noexcept : outcome(status, duet_error()) {}
    outcome(duet_status status, const char *text) noexcept : s(status)
    {
        if (s != DUET_OK) copy.reset(strdup(text));
    }
    explicit operator bool() const noexcept { return s == DUET_OK; }
    duet_status status() const noexcept { return s; }
    const char *text() const noexcept { return copy ? copy.get() : duet_status_text(s); }
};
template <class T> class [[nodiscard]] result : public outcome
{
    T x;

  public:
    result(duet_status status, T value) noexcept : result(outcome(status), std::move(value)) {}
    result(outcome o, T value) noexcept : outcome(std::move(o)), x(std::move(value)) {}
    T &value() noexcept { return x; }
    T &operator*() noexcept { return x; }
    T *operator->() noexcept { return &x; }
};

namespace detail
{
/* Returns "file:line". The library stores the pointer, so the texts live until the process ends; each
 * line has one. NULL: no memory. */
inline const char *site(location w) noexcept
{
    struct place {
        const char *file;
        unsigned line;
        place *next;
        char text[1];
    };
    static std::atomic<place *> table[512];
    static thread_local const place *last;
    if (last && last->file == w.file && last->line == w.line) return last->text;
    std::atomic<place *> &slot = table[(reinterpret_cast<uintptr_t>(w.file) / 8 + w.line) % 512];
    place *head = slot.load(std::memory_order_acquire);
    for (const place *p = head; p; p = p->next)
        if (p->file == w.file && p->line == w.line) return (last = p)->text;
    const std::size_t n = std::strlen(w.file) + 12;
    place *p = static_cast<place *>(std::malloc(sizeof(place) + n));
    if (!p) return nullptr;
    p->file = w.file;
    p->line = w.line;
    std::snprintf(p->text, n, "%s:%u", w.file, w.line);
    do p->next = head;
    while (!slot.compare_exchange_weak(head, p, std::memory_order_acq_rel));
    return (last = p)->text;
}

#ifdef __cpp_exceptions
[[noreturn]] inline void raise(const error &e) { throw e; }
[[noreturn]]
#else
inline thread_local outcome *captured; /* receives the first error within try_call */
inline void raise(const error &e)
{
    if (!captured) error_hook(e);
    else if (*captured) *captured = outcome(e.status(), e.what());
}
#endif
inline void
raise(duet_status s, location w)
{
    duet_error_at(site(w));
    raise(error(s, duet_error(), w));
}

/* For errors that C++ finds itself. */
#ifdef __cpp_exceptions
[[noreturn]]
#endif
inline void
raise(duet_status s, const char *text, location w)
{
    raise(error(s, std::string(w.file) + ":" + std::to_string(w.line) + ": " + text, w));
}

inline void check(duet_status s, location w)
{
    if (s != DUET_OK) raise(s, w);
}

/* Returns p. If it is NULL, the last call failed. */
template <class T> T *check(T *p, location w)
{
    if (!p) raise(duet_error_status(), w);
    return p;
}
inline duet_matrix *made(duet_matrix *m, location w)
{
    if (check(m, w)) duet_created_at(m, site(w));
    return m;
}

template <class T> struct is_complex : std::false_type {
};
template <class T> struct is_complex<std::complex<T>> : std::true_type {
};
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> || is_complex<T>::value; /* of C++ */
template <class T>
inline constexpr bool is_element =
    (std::is_arithmetic_v<T> && !std::is_same_v<T, long double>) || std::is_same_v<T, std::complex<float>> ||
    std::is_same_v<T, std::complex<double>> || std::is_same_v<T, f16_bits> || std::is_same_v<T, bf16_bits>;
template <class... N> inline constexpr bool are_integers = (std::is_integral_v<N> && ...);
template <class A, class B> inline constexpr bool is_same = std::is_same_v<std::decay_t<A>, B>;

/* The element type of a container with data() and size(), such as std::vector; void: it is none. */
template <class C>
auto element_in(const C &c)
    -> std::enable_if_t<std::is_convertible_v<decltype(std::size(c)), std::size_t>,
                        std::remove_cv_t<std::remove_pointer_t<decltype(std::data(c))>>>;
void element_in(...);
template <class C> using element_of = decltype(element_in(std::declval<const C &>()));
} // namespace detail

/* The element type of a matrix that has elements of the C++ type T. */
template <class T> constexpr dtype dtype_of() noexcept
{
    static_assert(detail::is_element<T>, "a matrix cannot have elements of this type");
    if constexpr (std::is_same_v<T, bool>) return boolean;
    else if constexpr (std::is_same_v<T, f16_bits>) return f16;
    else if constexpr (std::is_same_v<T, bf16_bits>) return bf16;
    else if constexpr (std::is_same_v<T, float>) return f32;
    else if constexpr (std::is_same_v<T, double>) return f64;
    else if constexpr (std::is_same_v<T, std::complex<float>>) return c64;
    else if constexpr (std::is_same_v<T, std::complex<double>>) return c128;
    else if constexpr (std::is_signed_v<T>)
        return sizeof(T) == 1 ? i8 : sizeof(T) == 2 ? i16 : sizeof(T) == 4 ? i32 : i64;
    else return sizeof(T) == 1 ? u8 : sizeof(T) == 2 ? u16 : sizeof(T) == 4 ? u32 : u64;
}

/* ---- sizes, axes, indices --------------------------------------------------------------------- */

/* A short list of sizes or axes: { 2, 3 }, one number, or a container that is known at run time. */
template <class T> class number_list
{
    static constexpr int most = DUET_RANK_MAX + 1; /* enough to report too many */
    int n = 0;
    T item[most] = {};

  public:
    template <class... N, std::enable_if_t<detail::are_integers<N...>, int> = 0>
    constexpr number_list(N... each) noexcept
    {
        (add(static_cast<T>(each)), ...);
    }
    template <class C, class E = detail::element_of<C>, std::enable_if_t<std::is_integral_v<E>, int> = 0>
    number_list(const C &c) noexcept
    {
        for (std::size_t i = 0; i < std::size(c); i++) add(static_cast<T>(std::data(c)[i]));
    }
    constexpr void add(T x) noexcept
    {
        if (n < most) item[n++] = x;
    }
    constexpr int size() const noexcept { return n; }
    constexpr const T *data() const noexcept { return item; }
    constexpr T operator[](int i) const noexcept { return item[i]; }
    constexpr const T *begin() const noexcept { return item; }
    constexpr const T *end() const noexcept { return item + n; }
    constexpr int64_t product() const noexcept
    {
        int64_t p = 1;
        for (int i = 0; i < n; i++) p *= static_cast<int64_t>(item[i]);
        return p;
    }
    friend constexpr bool operator==(const number_list &x, const number_list &y) noexcept
    {
        bool same = x.n == y.n;
        for (int i = 0; same && i < x.n; i++) same = x.item[i] == y.item[i];
        return same;
    }
    friend constexpr bool operator!=(const number_list &x, const number_list &y) noexcept
    {
        return !(x == y);
    }
};
using shape = number_list<int64_t>;
using axes = number_list<int>;

/* An entry of an index list: a number, duet::all, duet::range(0, 5), duet::newaxis or duet::rest. They
 * mean i, :, 0:5, None and ... in NumPy. duet::none as a bound of a range means that it has no limit, as None
 * in NumPy. */
namespace detail
{
struct all_function; /* the type of duet::all */
}
class index_entry
{
    duet_index_entry i;
    bool used = true;

  public:
    constexpr index_entry(duet_index_entry entry) noexcept : i(entry) {}
    template <class N, std::enable_if_t<std::is_integral_v<N>, int> = 0>
    constexpr index_entry(N at) noexcept : i{ DUET_INDEX_AT, static_cast<int64_t>(at), 0, 0 }
    {
    }
    constexpr index_entry(const detail::all_function &) noexcept
        : i{ DUET_INDEX_RANGE, DUET_OPEN, DUET_OPEN, 1 }
    {
    }
    static constexpr index_entry none() noexcept /* an argument that was not given */
    {
        index_entry e(0);
        e.used = false;
        return e;
    }
    constexpr bool given() const noexcept { return used; }
    constexpr duet_index_entry get() const noexcept { return i; }
};
inline constexpr int64_t none = DUET_OPEN;
inline constexpr index_entry newaxis = duet_index_entry{ DUET_INDEX_NEW, 0, 0, 0 },
                             rest = duet_index_entry{ DUET_INDEX_REST, 0, 0, 0 };
constexpr index_entry range(int64_t start, int64_t stop, int64_t step = 1) noexcept
{
    return duet_index_entry{ DUET_INDEX_RANGE, start, stop, step };
}

namespace detail
{
struct index_list {
    int count = 0;
    duet_index_entry entry[DUET_RANK_MAX];
    constexpr index_list(std::initializer_list<index_entry> all) noexcept : entry{}
    {
        for (const index_entry &i : all)
            if (i.given() && count < DUET_RANK_MAX) entry[count++] = i.get();
    }
};
} // namespace detail
/* The parameters of functions that take up to eight index entries: with defaults, without, and as a list. */
#define DUET_HPP_INDEX                                                                                       \
    index_entry a, index_entry b = index_entry::none(), index_entry c = index_entry::none(),                 \
                               index_entry d = index_entry::none(), index_entry e = index_entry::none(),     \
                               index_entry f = index_entry::none(), index_entry g = index_entry::none(),     \
                               index_entry h = index_entry::none(), location w = location::here()
#define DUET_HPP_INDEX_PLAIN                                                                                 \
    index_entry a, index_entry b, index_entry c, index_entry d, index_entry e, index_entry f, index_entry g, \
        index_entry h, location w
#define DUET_HPP_INDEX_LIST detail::index_list({ a, b, c, d, e, f, g, h })

/* The first number of a list of arguments, or all as a list, with the line of the call. */
template <class T> struct first_of {
    number_list<T> all;
    location where;
    template <class N, std::enable_if_t<std::is_integral_v<N>, int> = 0>
    first_of(N n, location w = location::here()) noexcept : all(n), where(w)
    {
    }
    first_of(const number_list<T> &numbers, location w = location::here()) noexcept : all(numbers), where(w)
    {
    }
    template <class... N> number_list<T> and_more(N... more) const noexcept
    {
        number_list<T> l = all;
        (l.add(static_cast<T>(more)), ...);
        return l;
    }
};

/* ---- formulas --------------------------------------------------------------------------------- */

class expr;
class matrix;
class operand;

/* The operators that matrices and formulas have as members. */
template <class D> class members
{
    const D &self() const noexcept { return static_cast<const D &>(*this); }

  public:
    expr operator()(DUET_HPP_INDEX) const noexcept;       /* x(duet::all, 3): a formula, as x[:, 3] */
    expr T(location w = location::here()) const noexcept; /* the axes in reverse order */
    template <class... N> expr reshape(first_of<int64_t> size, N... more) const noexcept;
    template <class... N> expr permute(first_of<int> axis, N... more) const noexcept;
};

class [[nodiscard]] expr : public members<expr>
{
    enum owner : unsigned char { nobody, mine, held };
    duet_expr e{};
    mutable owner o = nobody;
    friend expr hold(const operand &e) noexcept;

  public:
    expr() noexcept {} /* not a formula; an error if used */
    explicit expr(duet_expr made) noexcept : e(made), o(mine) {}
    template <class X, std::enable_if_t<detail::is_number<X> || detail::is_same<X, matrix>, int> = 0>
    expr(const X &x, location where = location::here()) noexcept;
    expr(expr &&from) noexcept : e(from.e), o(from.o) { from.o = nobody; }
    expr &operator=(expr &&from) &noexcept
    {
        expr taken(std::move(from));
        std::swap(e, taken.e);
        std::swap(o, taken.o);
        return *this;
    }
    ~expr()
    {
        if (o != nobody) (void)duet_drop_at(e, nullptr);
    }

    /* Returns the formula for the C functions. Afterwards it is a part of another formula, or spent. */
    duet_expr use() const noexcept
    {
        if (o == mine) o = nobody;
        return e;
    }
    duet_expr get() const noexcept { return e; }
    duet_status status() const noexcept { return duet_expr_status(e); }
    dtype type() const noexcept { return duet_expr_type(e); }
    int rank() const noexcept { return duet_expr_rank(e); }
    duet_structure structure() const noexcept { return duet_expr_structure(e); }
    int64_t size(int axis) const noexcept { return duet_expr_size(e, axis); }
    duet::shape shape() const noexcept
    {
        duet::shape s;
        for (int i = 0; i < rank(); i++) s.add(size(i));
        return s;
    }
};

/* A parameter that takes a matrix, a formula or a number, and the line of the call. It refers to its
 * argument: use it for parameters only. */
class operand
{
    enum { of_matrix, of_expr, of_handle, of_real, of_signed, of_unsigned, of_complex } kind;
    union {
        const duet_matrix *m;
        const expr *x;
        duet_expr e;
        double real;
        int64_t i;
        uint64_t u;
    };
    double imaginary = 0;
    location w;

  public:
    inline operand(const matrix &of, location where = location::here()) noexcept;
    operand(const expr &formula, location where = location::here()) noexcept
        : kind(of_expr), x(&formula), w(where)
    {
    }
    operand(duet_expr made, location where = location::here()) noexcept : kind(of_handle), e(made), w(where)
    {
    }
    template <class N, std::enable_if_t<detail::is_number<N>, int> = 0>
    operand(N n, location where = location::here()) noexcept : kind(of_real), real(0), w(where)
    {
        if constexpr (detail::is_complex<N>::value) {
            kind = of_complex;
            real = static_cast<double>(n.real());
            imaginary = static_cast<double>(n.imag());
        } else if constexpr (std::is_floating_point_v<N>) {
            real = static_cast<double>(n);
        } else if constexpr (std::is_signed_v<N>) {
            kind = of_signed;
            i = n;
        } else {
            kind = of_unsigned;
            u = n;
        }
    }
    duet_expr get() const noexcept
    {
        switch (kind) {
        case of_matrix: return duet_of_matrix(m);
        case of_expr: return x->use();
        case of_real: return duet_of_number(real);
        case of_signed: return duet_of_integer(i);
        case of_unsigned: return duet_of_unsigned(u);
        case of_complex: return duet_complex(duet_of_number(real), duet_of_number(imaginary));
        default: return e;
        }
    }
    /* Returns the formula without using it up. `made` owns it if it is a new one. */
    duet_expr peek(expr &made) const noexcept
    {
        if (kind == of_expr) return x->get();
        if (kind != of_handle) made = expr(get());
        return kind == of_handle ? e : made.get();
    }
    location where() const noexcept { return w; }
    const char *site() const noexcept { return detail::site(w); }
};

template <class X, std::enable_if_t<detail::is_number<X> || detail::is_same<X, matrix>, int>>
expr::expr(const X &x, location where) noexcept : expr(operand(x, where).get())
{
}

/* Options of operators, which are those of the C structs (duet/options.h). In C++20 write
 *     duet::conv2d(x, w, { .pad = { 1, 1 } })
 * In C++17 write
 *     duet::conv_options o;
 *     o.pad[0] = o.pad[1] = 1;
 *     duet::conv2d(x, w, o) */
#define DUET_HPP_NAMED(name, ...)                                                                            \
    struct name##_options __VA_ARGS__;                                                                       \
    static_assert(sizeof(name##_options) == sizeof(duet_##name) && std::is_standard_layout_v<name##_options>)
// clang-format off
DUET_HPP_NAMED(conv, { int32_t stride[2] = {}, pad[2] = {}, dilation[2] = {}, groups = 0, more[2] = {}; });
DUET_HPP_NAMED(pool, { int32_t window[2] = {}, stride[2] = {}, pad[2] = {}, more[2] = {}, dilation[2] = {},
               ceil = 0, exclude_pad = 0, ties = 0; });
DUET_HPP_NAMED(conv_grad, { int32_t stride[2] = {}, pad[2] = {}, dilation[2] = {}, groups = 0,
               size[2] = {}, more[2] = {}; });
DUET_HPP_NAMED(conv_transposed, { int32_t stride[2] = {}, pad[2] = {}, dilation[2] = {}, groups = 0,
               output_pad[2] = {}, more[2] = {}; });
DUET_HPP_NAMED(pool_grad, { int32_t window[2] = {}, stride[2] = {}, pad[2] = {}, size[2] = {}; });
DUET_HPP_NAMED(scale, { int32_t scale[2] = {}; });
DUET_HPP_NAMED(conv1, { int32_t stride = 0, pad = 0, dilation = 0, groups = 0, more = 0; });
DUET_HPP_NAMED(pool1, { int32_t window = 0, stride = 0, pad = 0, more = 0, dilation = 0,
               ceil = 0, exclude_pad = 0, ties = 0; });
DUET_HPP_NAMED(conv1_grad, { int32_t stride = 0, pad = 0, dilation = 0, groups = 0, size = 0, more = 0; });
DUET_HPP_NAMED(conv1_transposed, { int32_t stride = 0, pad = 0, dilation = 0, groups = 0,
               output_pad = 0, more = 0; });
DUET_HPP_NAMED(pool1_grad, { int32_t window = 0, stride = 0, pad = 0, size = 0; });
DUET_HPP_NAMED(scale1, { int32_t scale = 0; });
DUET_HPP_NAMED(conv3, { int32_t stride[3] = {}, pad[3] = {}, dilation[3] = {}, groups = 0, more[3] = {}; });
DUET_HPP_NAMED(pool3, { int32_t window[3] = {}, stride[3] = {}, pad[3] = {}, more[3] = {}, dilation[3] = {},
               ceil = 0, exclude_pad = 0, ties = 0; });
DUET_HPP_NAMED(conv3_grad, { int32_t stride[3] = {}, pad[3] = {}, dilation[3] = {}, groups = 0,
               size[3] = {}, more[3] = {}; });
DUET_HPP_NAMED(conv3_transposed, { int32_t stride[3] = {}, pad[3] = {}, dilation[3] = {}, groups = 0,
               output_pad[3] = {}, more[3] = {}; });
DUET_HPP_NAMED(pool3_grad, { int32_t window[3] = {}, stride[3] = {}, pad[3] = {}, size[3] = {}; });
DUET_HPP_NAMED(scale3, { int32_t scale[3] = {}; });
DUET_HPP_NAMED(fourier, { int32_t axes = 0, axis[DUET_RANK_MAX] = {}, n[DUET_RANK_MAX] = {}; });
DUET_HPP_NAMED(triangle, { int32_t lower = 0, unit = 0, transposed = 0; });
DUET_HPP_NAMED(solver, { int32_t refine = 0; });
DUET_HPP_NAMED(padding, { int64_t before[DUET_RANK_MAX] = {}, after[DUET_RANK_MAX] = {};
               duet_pad_mode mode = DUET_PAD_CONSTANT; double value = 0; });
DUET_HPP_NAMED(scan, { int exclusive = 0, reverse = 0, initial = 0; });
DUET_HPP_NAMED(interpolation, { int64_t size[DUET_RANK_MAX] = {};
               duet_interpolate_mode mode = DUET_INTERPOLATE_NEAREST;
               duet_align align = DUET_ALIGN_CENTERS; int antialias = 0; double cubic = 0; });
DUET_HPP_NAMED(windows, { int32_t window[2] = {}, stride[2] = {}, pad[2] = {}, dilation[2] = {}; });
// clang-format on
#undef DUET_HPP_NAMED
inline constexpr duet_overlap overlap_full = DUET_OVERLAP_FULL, overlap_same = DUET_OVERLAP_SAME,
                              overlap_valid = DUET_OVERLAP_VALID;
inline constexpr duet_pad_mode pad_constant = DUET_PAD_CONSTANT, pad_edge = DUET_PAD_EDGE,
                               pad_reflect = DUET_PAD_REFLECT, pad_wrap = DUET_PAD_WRAP;
inline constexpr duet_pool_ties ties_first = DUET_TIES_FIRST, ties_shared = DUET_TIES_SHARED;
inline constexpr duet_interpolate_mode interpolate_nearest = DUET_INTERPOLATE_NEAREST,
                                       interpolate_linear = DUET_INTERPOLATE_LINEAR,
                                       interpolate_cubic = DUET_INTERPOLATE_CUBIC;
inline constexpr duet_align align_centers = DUET_ALIGN_CENTERS, align_corners = DUET_ALIGN_CORNERS,
                            align_first = DUET_ALIGN_FIRST;
inline constexpr duet_scatter_how scatter_set = DUET_SCATTER_SET, scatter_by_add = DUET_SCATTER_ADD,
                                  scatter_by_mul = DUET_SCATTER_MUL, scatter_by_min = DUET_SCATTER_MIN,
                                  scatter_by_max = DUET_SCATTER_MAX;
inline constexpr duet_loss_reduction loss_mean = DUET_LOSS_MEAN, loss_sum = DUET_LOSS_SUM,
                                     loss_none = DUET_LOSS_NONE;
inline constexpr duet_side side_left = DUET_SIDE_LEFT, side_right = DUET_SIDE_RIGHT;
inline constexpr int refine_f32 = DUET_REFINE_F32, refine_f16 = DUET_REFINE_F16;

namespace detail
{
/* The C struct of options, as a pointer. */
template <class C> struct options {
    C c;
    template <class O> explicit options(const O &o) noexcept { std::memcpy(&c, &o, sizeof c); }
    operator const C *() const noexcept { return &c; }
};
} // namespace detail

/* The operators, one function for each row of ops.def, composed.def and networks.def, with the same names
 * and parameters as in C but without the prefix. PARAM and ARG: the parameters after the operands, by the
 * word that the row has for them. */
#define DUET_HPP_PARAM_plain
#define DUET_HPP_PARAM_type      , dtype type
#define DUET_HPP_PARAM_axis      , int axis
#define DUET_HPP_PARAM_overlap   , duet_overlap part = overlap_full
#define DUET_HPP_PARAM_classes   , int n, dtype type
#define DUET_HPP_PARAM_top       , int k, int axis
#define DUET_HPP_PARAM_bins      , double low, double high, int n
#define DUET_HPP_PARAM_sizes     , const shape &size
#define DUET_HPP_PARAM_order     , const axes &order
#define DUET_HPP_PARAM_range     , int axis, int64_t start, int64_t stop, int64_t by
#define DUET_HPP_PARAM_offset    , int64_t offset = 0
#define DUET_HPP_PARAM_csr       , int64_t columns, bool transposed = false
#define DUET_HPP_PARAM_turned    , bool transposed = false
#define DUET_HPP_PARAM_indices   , const char *letters
#define DUET_HPP_PARAM_number    , double s
#define DUET_HPP_PARAM_pick      , int axis, int64_t i
#define DUET_HPP_PARAM_part      , int axis, int count, int k
#define DUET_HPP_PARAM_two_axes  , int i, int j
#define DUET_HPP_PARAM_tolerance , double relative = 1e-5, double absolute = 1e-8
#define DUET_HPP_PARAM_power     , int n
#define DUET_HPP_PARAM_rtol      , double rtol = -1
#define DUET_HPP_PARAM_norm      , duet_matrix_norms kind = DUET_NORM_FRO
#define DUET_HPP_PARAM_cond      , duet_matrix_norms kind = DUET_NORM_2
#define DUET_HPP_PARAM_block     , int h, int w
#define DUET_HPP_PARAM_window    , int axis, int64_t size, int64_t stride = 1, int64_t dilation = 1
#define DUET_HPP_PARAM_length    , int n = 0, int axis = -1
#define DUET_HPP_PARAM_times     , int64_t times, int axis
#define DUET_HPP_PARAM_diagonal  , int64_t k = 0
#define DUET_HPP_PARAM_grid      , int axis, const shape &size
#define DUET_HPP_PARAM_last_axis , int axis = -1
#define DUET_HPP_PARAM_diff      , int n = 1, int axis = -1
#define DUET_HPP_PARAM_ddof      , double ddof = 1
#define DUET_HPP_PARAM_side      , duet_side side = side_left
#define DUET_HPP_PARAM_by        , int64_t by, int axis
#define DUET_HPP_PARAM_how       , duet_scatter_how how
#define DUET_HPP_PARAM_axis_how  , int axis, duet_scatter_how how
#define DUET_HPP_PARAM_groups    , int groups, double r
#define DUET_HPP_ARG_plain
#define DUET_HPP_ARG_type      , type
#define DUET_HPP_ARG_axis      , axis
#define DUET_HPP_ARG_overlap   , part
#define DUET_HPP_ARG_classes   , n, type
#define DUET_HPP_ARG_top       , k, axis
#define DUET_HPP_ARG_bins      , low, high, n
#define DUET_HPP_ARG_sizes     , size.size(), size.data()
#define DUET_HPP_ARG_order     , order.size(), order.data()
#define DUET_HPP_ARG_range     , axis, start, stop, by
#define DUET_HPP_ARG_offset    , offset
#define DUET_HPP_ARG_csr       , columns, transposed
#define DUET_HPP_ARG_turned    , transposed
#define DUET_HPP_ARG_indices   , letters
#define DUET_HPP_ARG_number    , s
#define DUET_HPP_ARG_pick      , axis, i
#define DUET_HPP_ARG_part      , axis, count, k
#define DUET_HPP_ARG_two_axes  , i, j
#define DUET_HPP_ARG_tolerance , relative, absolute
#define DUET_HPP_ARG_power     , n
#define DUET_HPP_ARG_rtol      , rtol
#define DUET_HPP_ARG_norm      , kind
#define DUET_HPP_ARG_cond      , kind
#define DUET_HPP_ARG_block     , h, w
#define DUET_HPP_ARG_window    , axis, size, stride, dilation
#define DUET_HPP_ARG_length    , n, axis
#define DUET_HPP_ARG_times     , times, axis
#define DUET_HPP_ARG_diagonal  , k
#define DUET_HPP_ARG_grid      , axis, size.size(), size.data()
#define DUET_HPP_ARG_last_axis , axis
#define DUET_HPP_ARG_diff      , n, axis
#define DUET_HPP_ARG_ddof      , ddof
#define DUET_HPP_ARG_side      , side
#define DUET_HPP_ARG_by        , by, axis
#define DUET_HPP_ARG_how       , how
#define DUET_HPP_ARG_axis_how  , axis, how
#define DUET_HPP_ARG_groups    , groups, r
// clang-format off
#define DUET_HPP_PARAM_conv             , const conv_options &o = {}
#define DUET_HPP_ARG_conv               , detail::options<duet_conv>(o)
#define DUET_HPP_PARAM_pool             , const pool_options &o = {}
#define DUET_HPP_ARG_pool               , detail::options<duet_pool>(o)
#define DUET_HPP_PARAM_conv_grad        , const conv_grad_options &o = {}
#define DUET_HPP_ARG_conv_grad          , detail::options<duet_conv_grad>(o)
#define DUET_HPP_PARAM_conv_transposed  , const conv_transposed_options &o = {}
#define DUET_HPP_ARG_conv_transposed    , detail::options<duet_conv_transposed>(o)
#define DUET_HPP_PARAM_pool_grad        , const pool_grad_options &o = {}
#define DUET_HPP_ARG_pool_grad          , detail::options<duet_pool_grad>(o)
#define DUET_HPP_PARAM_scale            , const scale_options &o = {}
#define DUET_HPP_ARG_scale              , detail::options<duet_scale>(o)
#define DUET_HPP_PARAM_conv1            , const conv1_options &o = {}
#define DUET_HPP_ARG_conv1              , detail::options<duet_conv1>(o)
#define DUET_HPP_PARAM_pool1            , const pool1_options &o = {}
#define DUET_HPP_ARG_pool1              , detail::options<duet_pool1>(o)
#define DUET_HPP_PARAM_conv1_grad       , const conv1_grad_options &o = {}
#define DUET_HPP_ARG_conv1_grad         , detail::options<duet_conv1_grad>(o)
#define DUET_HPP_PARAM_conv1_transposed , const conv1_transposed_options &o = {}
#define DUET_HPP_ARG_conv1_transposed   , detail::options<duet_conv1_transposed>(o)
#define DUET_HPP_PARAM_pool1_grad       , const pool1_grad_options &o = {}
#define DUET_HPP_ARG_pool1_grad         , detail::options<duet_pool1_grad>(o)
#define DUET_HPP_PARAM_scale1           , const scale1_options &o = {}
#define DUET_HPP_ARG_scale1             , detail::options<duet_scale1>(o)
#define DUET_HPP_PARAM_conv3            , const conv3_options &o = {}
#define DUET_HPP_ARG_conv3              , detail::options<duet_conv3>(o)
#define DUET_HPP_PARAM_pool3            , const pool3_options &o = {}
#define DUET_HPP_ARG_pool3              , detail::options<duet_pool3>(o)
#define DUET_HPP_PARAM_conv3_grad       , const conv3_grad_options &o = {}
#define DUET_HPP_ARG_conv3_grad         , detail::options<duet_conv3_grad>(o)
#define DUET_HPP_PARAM_conv3_transposed , const conv3_transposed_options &o = {}
#define DUET_HPP_ARG_conv3_transposed   , detail::options<duet_conv3_transposed>(o)
#define DUET_HPP_PARAM_pool3_grad       , const pool3_grad_options &o = {}
#define DUET_HPP_ARG_pool3_grad         , detail::options<duet_pool3_grad>(o)
#define DUET_HPP_PARAM_scale3           , const scale3_options &o = {}
#define DUET_HPP_ARG_scale3             , detail::options<duet_scale3>(o)
#define DUET_HPP_PARAM_fourier          , const fourier_options &o = {}
#define DUET_HPP_ARG_fourier            , detail::options<duet_fourier>(o)
#define DUET_HPP_PARAM_triangle         , const triangle_options &o = {}
#define DUET_HPP_ARG_triangle           , detail::options<duet_triangle>(o)
#define DUET_HPP_PARAM_solver           , const solver_options &o = {}
#define DUET_HPP_ARG_solver             , detail::options<duet_solver>(o)
#define DUET_HPP_PARAM_padding          , const padding_options &o
#define DUET_HPP_ARG_padding            , detail::options<duet_padding>(o)
#define DUET_HPP_PARAM_interpolation    , const interpolation_options &o
#define DUET_HPP_ARG_interpolation      , detail::options<duet_interpolation>(o)
#define DUET_HPP_PARAM_windows          , const windows_options &o
#define DUET_HPP_ARG_windows            , detail::options<duet_windows>(o)
// clang-format on

#define DUET_HPP_1(name, options, ...)                                                                       \
    inline expr name(const operand &x DUET_HPP_PARAM_##options) noexcept                                     \
    {                                                                                                        \
        return expr(duet_##name##_at(x.get() DUET_HPP_ARG_##options, x.site()));                             \
    }
#define DUET_HPP_2(name, options, ...)                                                                       \
    inline expr name(const operand &x, const operand &y DUET_HPP_PARAM_##options) noexcept                   \
    {                                                                                                        \
        const duet_expr first = x.get();                                                                     \
        return expr(duet_##name##_at(first, y.get() DUET_HPP_ARG_##options, x.site()));                      \
    }
#define DUET_HPP_3(name, options, ...)                                                                       \
    inline expr name(const operand &x, const operand &y, const operand &z DUET_HPP_PARAM_##options) noexcept \
    {                                                                                                        \
        const duet_expr first = x.get(), second = y.get();                                                   \
        return expr(duet_##name##_at(first, second, z.get() DUET_HPP_ARG_##options, x.site()));              \
    }
/* Reductions: sum(x), sum(x, 0), sum(x, { 0, 2 }), and sum_keep(x, 0), which keeps the axes with size 1. */
#define DUET_HPP_FOLD1(name, ...)                                                                            \
    DUET_HPP_1(name, plain, )                                                                                \
    inline expr name(const operand &x, const axes &a) noexcept                                               \
    {                                                                                                        \
        return expr(duet_##name##_axes_at(x.get(), a.size(), a.data(), x.site()));                           \
    }                                                                                                        \
    inline expr name##_keep(const operand &x, const axes &a) noexcept                                        \
    {                                                                                                        \
        return expr(duet_##name##_axes_keep_at(x.get(), a.size(), a.data(), x.site()));                      \
    }
#define DUET_HPP_FOLD2(name, ...)                                                                            \
    DUET_HPP_2(name, plain, )                                                                                \
    inline expr name(const operand &x, const operand &y, const axes &a) noexcept                             \
    {                                                                                                        \
        const duet_expr first = x.get();                                                                     \
        return expr(duet_##name##_axes_at(first, y.get(), a.size(), a.data(), x.site()));                    \
    }                                                                                                        \
    inline expr name##_keep(const operand &x, const operand &y, const axes &a) noexcept                      \
    {                                                                                                        \
        const duet_expr first = x.get();                                                                     \
        return expr(duet_##name##_axes_keep_at(first, y.get(), a.size(), a.data(), x.site()));               \
    }
#define DUET_HPP_PLACE(name, ...)                                                                            \
    DUET_HPP_1(name, plain, )                                                                                \
    inline expr name(const operand &x, int axis) noexcept                                                    \
    {                                                                                                        \
        return expr(duet_##name##_axis_at(x.get(), axis, x.site()));                                         \
    }                                                                                                        \
    inline expr name##_keep(const operand &x, int axis) noexcept                                             \
    {                                                                                                        \
        return expr(duet_##name##_keep_at(x.get(), axis, x.site()));                                         \
    }
/* any and all are objects, because duet::all is also an index entry. */
#define DUET_HPP_TRUTH(name, ...)                                                                            \
    namespace detail                                                                                         \
    {                                                                                                        \
    struct name##_function {                                                                                 \
        expr operator()(const operand &x) const noexcept                                                     \
        {                                                                                                    \
            return expr(duet_##name##_at(x.get(), x.site()));                                                \
        }                                                                                                    \
        expr operator()(const operand &x, const axes &a) const noexcept                                      \
        {                                                                                                    \
            return expr(duet_##name##_axes_at(x.get(), a.size(), a.data(), x.site()));                       \
        }                                                                                                    \
    };                                                                                                       \
    }                                                                                                        \
    inline constexpr detail::name##_function name{};                                                         \
    inline expr name##_keep(const operand &x, const axes &a) noexcept                                        \
    {                                                                                                        \
        return expr(duet_##name##_axes_keep_at(x.get(), a.size(), a.data(), x.site()));                      \
    }
#define DUET_MAP1(name, ...) DUET_HPP_1(name, plain, )
#define DUET_MAP2(name, ...) DUET_HPP_2(name, plain, )
#define DUET_MAP3(name, ...) DUET_HPP_3(name, plain, )
#define DUET_INT1            DUET_MAP1
#define DUET_INT2            DUET_MAP2
#define DUET_FOLD1           DUET_HPP_FOLD1
#define DUET_FOLD2           DUET_HPP_FOLD2
#define DUET_MOMENT1         DUET_HPP_FOLD1
#define DUET_TRUTH1          DUET_HPP_TRUTH
#define DUET_PLACE1          DUET_HPP_PLACE
#define DUET_DEF1            DUET_HPP_1
#define DUET_DEF2            DUET_HPP_2
#define DUET_CALL1           DUET_HPP_1
#define DUET_CALL2           DUET_HPP_2
#define DUET_CALL3           DUET_HPP_3
#include <duet/ops.def>
#define DUET_COMPOSED1(name, ...)  DUET_HPP_1(name, plain, )
#define DUET_COMPOSED2(name, ...)  DUET_HPP_2(name, plain, )
#define DUET_COMPOSED3(name, ...)  DUET_HPP_3(name, plain, )
#define DUET_COMPOSED1N(name, ...) DUET_HPP_1(name, number, )
#define DUET_COMPOSED_MATRIX1      DUET_COMPOSED1
#define DUET_COMPOSED_FOLD1        DUET_HPP_FOLD1
#include <duet/composed.def>
#define DUET_NETWORK1(name, ...)  DUET_HPP_1(name, plain, )
#define DUET_NETWORK2(name, ...)  DUET_HPP_2(name, plain, )
#define DUET_NETWORK2R(name, ...) DUET_HPP_2(name, number, )
#define DUET_NETWORK3R(name, ...) DUET_HPP_3(name, number, )
#include <duet/networks.def>

/* Operators that are not rows (duet/operators.h, duet/arrange.h). */
DUET_HPP_1(flip, axis, )
DUET_HPP_1(squeeze, axis, )
DUET_HPP_1(expand_dims, axis, )
DUET_HPP_1(pick, pick, )
DUET_HPP_1(part, part, )
DUET_HPP_1(moveaxis, two_axes, )
DUET_HPP_1(swapaxes, two_axes, )
DUET_HPP_2(outer, plain, )
DUET_HPP_2(vdot, plain, )
DUET_HPP_2(cross, plain, )
DUET_HPP_2(array_equal, plain, )
DUET_HPP_2(allclose, tolerance, )
DUET_HPP_1(pow_int, power, )
DUET_HPP_1(p_max_pool_h, block, )
DUET_HPP_1(p_max_pool_p, block, )
DUET_HPP_1(fft, length, )
DUET_HPP_1(ifft, length, )
DUET_HPP_1(rfft, length, )
DUET_HPP_1(irfft, length, )
DUET_HPP_1(fft2, plain, )
DUET_HPP_1(ifft2, plain, )
DUET_HPP_1(rfft2, plain, )
DUET_HPP_1(irfft2, plain, )
DUET_HPP_1(tril, diagonal, )
DUET_HPP_1(triu, diagonal, )
DUET_HPP_1(diag, diagonal, )
DUET_HPP_1(meshgrid, grid, )
DUET_HPP_2(vecdot, last_axis, )
DUET_HPP_2(nextafter, plain, )
DUET_HPP_2(isin, plain, )
DUET_HPP_2(searchsorted, side, )
DUET_HPP_1(diff, diff, )
DUET_HPP_1(cov, ddof, )
DUET_HPP_1(corrcoef, plain, )
DUET_HPP_1(pinv, plain, )
DUET_HPP_1(matrix_rank, rtol, )
DUET_HPP_1(matrix_norm, norm, )
DUET_HPP_1(cond, cond, )
DUET_HPP_1(matrix_power, power, )
DUET_HPP_1(permutation_matrix, type, )
DUET_HPP_FOLD1(median, )
/* Reductions with a number: quantile(x, 0.25), quantile(x, 0.25, { 0, 2 }), quantile_keep(x, 0.25, 0). */
#define DUET_HPP_FOLD1N(name)                                                                                \
    DUET_HPP_1(name, number, )                                                                               \
    inline expr name(const operand &x, double s, const axes &a) noexcept                                     \
    {                                                                                                        \
        return expr(duet_##name##_axes_at(x.get(), s, a.size(), a.data(), x.site()));                        \
    }                                                                                                        \
    inline expr name##_keep(const operand &x, double s, const axes &a) noexcept                              \
    {                                                                                                        \
        return expr(duet_##name##_axes_keep_at(x.get(), s, a.size(), a.data(), x.site()));                   \
    }
DUET_HPP_FOLD1N(var_ddof)
DUET_HPP_FOLD1N(std_ddof)
DUET_HPP_FOLD1N(quantile)
DUET_HPP_FOLD1N(percentile)
DUET_HPP_FOLD1N(vector_norm)
#undef DUET_HPP_FOLD1N
inline expr cross(const operand &x, const operand &y, int axis) noexcept
{
    const duet_expr first = x.get();
    return expr(duet_cross_axis_at(first, y.get(), axis, x.site()));
}
/* The numbers 0, 1, ..., n - 1. */
inline expr iota(dtype type, int64_t n, location w = location::here()) noexcept
{
    return expr(duet_iota_at(type, n, detail::site(w)));
}
/* Operators of duet/layers.h, and others with an axis or options behind the operands: softmax(x, 0). */
#define DUET_HPP_AXIS(name)                                                                                  \
    inline expr name(const operand &x, int axis) noexcept                                                    \
    {                                                                                                        \
        return expr(duet_##name##_axis_at(x.get(), axis, x.site()));                                         \
    }
DUET_HPP_AXIS(softmax)
DUET_HPP_AXIS(log_softmax)
#undef DUET_HPP_AXIS
inline expr one_hot(const operand &indices, int n, dtype type, int axis) noexcept
{
    return expr(duet_one_hot_axis_at(indices.get(), n, type, axis, indices.site()));
}
inline expr layer_norm(const operand &x, const operand &scale, const operand &shift, double r,
                       const axes &a) noexcept
{
    const duet_expr first = x.get(), second = scale.get();
    return expr(duet_layer_norm_axes_at(first, second, shift.get(), r, a.size(), a.data(), x.site()));
}
inline expr rms_norm(const operand &x, const operand &scale, double r, const axes &a) noexcept
{
    const duet_expr first = x.get();
    return expr(duet_rms_norm_axes_at(first, scale.get(), r, a.size(), a.data(), x.site()));
}
DUET_HPP_2(rms_norm, number, )
DUET_HPP_3(group_norm, groups, )
DUET_HPP_1(max_pool1d_indices, pool1, )
DUET_HPP_1(max_pool2d_indices, pool, )
DUET_HPP_1(max_pool3d_indices, pool3, )
DUET_HPP_1(interpolate, interpolation, )
DUET_HPP_3(scatter_min, axis, )
DUET_HPP_3(put_along_axis, axis, )
DUET_HPP_3(scatter_along_axis, axis_how, )
DUET_HPP_2(gather_nd, plain, )
DUET_HPP_3(scatter_nd, how, )
#define DUET_HPP_SCAN(name)                                                                                  \
    inline expr name(const operand &x, int axis, const scan_options &o) noexcept                             \
    {                                                                                                        \
        return expr(duet_##name##_with_at(x.get(), axis, detail::options<duet_scan>(o), x.site()));          \
    }
DUET_HPP_SCAN(cumsum)
DUET_HPP_SCAN(cumprod)
#undef DUET_HPP_SCAN
DUET_HPP_1(tile, sizes, )
DUET_HPP_1(repeat, times, )
DUET_HPP_1(pad, padding, )
DUET_HPP_1(roll, by, )
DUET_HPP_1(im2col, windows, )
DUET_HPP_1(stop_gradient, plain, )
DUET_HPP_1(checkpoint, plain, )
DUET_HPP_3(clip_norm, plain, )
inline expr index(const operand &x, DUET_HPP_INDEX) noexcept
{
    const detail::index_list list = DUET_HPP_INDEX_LIST;
    return expr(duet_index_at(x.get(), list.count, list.entry, detail::site(w)));
}
template <class... N> expr reshape(const operand &x, int64_t size, N... more) noexcept
{
    return reshape(x, shape(size, more...));
}
template <class... N> expr broadcast(const operand &x, int64_t size, N... more) noexcept
{
    return broadcast(x, shape(size, more...));
}
template <class... N> expr permute(const operand &x, int axis, N... more) noexcept
{
    return permute(x, axes(axis, more...));
}
template <class... N> expr tile(const operand &x, int64_t times, N... more) noexcept
{
    return tile(x, shape(times, more...));
}

/* A parameter that takes several operands: { x, y * 2, 1 }, or a container of matrices or formulas. It
 * refers to its arguments: use it for parameters only. */
class operand_list
{
    const void *first = nullptr;
    std::size_t n;
    operand (*item)(const void *first, std::size_t i, location w) = nullptr;
    location w;

    template <class T> static operand item_of(const void *list, std::size_t i, location where)
    {
        if constexpr (std::is_same_v<T, operand>) return static_cast<const T *>(list)[i];
        else return operand(static_cast<const T *>(list)[i], where);
    }

  public:
    operand_list(std::initializer_list<operand> list, location where = location::here()) noexcept
        : first(list.begin()), n(list.size()), item(item_of<operand>),
          w(list.size() ? list.begin()->where() : where)
    {
    }
    template <class C, class T = detail::element_of<C>,
              std::enable_if_t<std::is_same_v<T, matrix> || std::is_same_v<T, expr>, int> = 0>
    operand_list(const C &c, location where = location::here()) noexcept
        : first(std::data(c)), n(std::size(c)), item(item_of<T>), w(where)
    {
    }
    std::size_t size() const noexcept { return n; }
    duet_expr get(std::size_t i) const noexcept { return item(first, i, w).get(); }
    location where() const noexcept { return w; }
};
namespace detail
{
/* The formulas of a list. NULL: no memory; the formulas are then not used. */
class formulas
{
    duet_expr few[16] = {};
    std::unique_ptr<duet_expr[]> many;
    duet_expr *p = few;
    int n;

  public:
    explicit formulas(const operand_list &list) noexcept : n(static_cast<int>(list.size()))
    {
        if (list.size() > 16) {
            many.reset(new (std::nothrow) duet_expr[list.size()]);
            p = many.get();
        }
        for (std::size_t i = 0; p && i < list.size(); i++) p[i] = list.get(i);
    }
    formulas(const formulas &) = delete; /* p may point to `few` */
    formulas &operator=(const formulas &) = delete;
    const duet_expr *data() const noexcept { return p; }
    int size() const noexcept { return n; }
};
} // namespace detail
/* Joined operands: concat(0, x, y) or concat(0, { x, y }) or concat(0, vector_of_matrices). */
#define DUET_HPP_JOIN(name)                                                                                  \
    inline expr name(int axis, const operand_list &list) noexcept                                            \
    {                                                                                                        \
        const detail::formulas x(list);                                                                      \
        return expr(duet_##name##_at(axis, x.size(), x.data(), detail::site(list.where())));                 \
    }                                                                                                        \
    template <class... X, std::enable_if_t<(std::is_convertible_v<const X &, operand> && ...), int> = 0>     \
    expr name(int axis, const operand &x, const operand &y, const X &...more) noexcept                       \
    {                                                                                                        \
        return name(axis, operand_list({ x, y, operand(more, x.where())... }));                              \
    }
DUET_HPP_JOIN(concat)
DUET_HPP_JOIN(stack)
#undef DUET_HPP_JOIN
/* global_norm(x, y) or global_norm({ x, y }) or global_norm(vector_of_matrices). */
inline expr global_norm(const operand_list &list) noexcept
{
    const detail::formulas x(list);
    return expr(duet_global_norm_at(x.size(), x.data(), detail::site(list.where())));
}
template <class... X, std::enable_if_t<(std::is_convertible_v<const X &, operand> && ...), int> = 0>
expr global_norm(const operand &x, const operand &y, const X &...more) noexcept
{
    return global_norm(operand_list({ x, y, operand(more, x.where())... }));
}

/* einsum({ x, y, z }, "ij,jk,kl->il"), or with a vector of matrices; of two operands also einsum(x, y, s). */
inline expr einsum(const operand_list &list, const char *letters) noexcept
{
    const detail::formulas x(list);
    return expr(duet_einsum_list_at(x.size(), x.data(), letters, detail::site(list.where())));
}

/* The padding of a convolution along one axis, for the options pad and more. */
inline int32_t pad_for(duet_overlap part, int32_t window, int32_t dilation = 0) noexcept
{
    return duet_pad_for(part, window, dilation);
}
inline int32_t same_padding(int64_t size, int32_t window, int32_t stride = 0, int32_t dilation = 0) noexcept
{
    return duet_same_padding(size, window, stride, dilation);
}

inline expr operator+(const operand &x, const operand &y) noexcept { return add(x, y); }
inline expr operator-(const operand &x, const operand &y) noexcept { return sub(x, y); }
inline expr operator*(const operand &x, const operand &y) noexcept { return mul(x, y); }
inline expr operator/(const operand &x, const operand &y) noexcept { return div(x, y); }
inline expr operator%(const operand &x, const operand &y) noexcept { return remainder(x, y); }
inline expr operator-(const operand &x) noexcept { return neg(x); }
inline expr operator==(const operand &x, const operand &y) noexcept { return equal(x, y); }
inline expr operator!=(const operand &x, const operand &y) noexcept { return not_equal(x, y); }
inline expr operator<(const operand &x, const operand &y) noexcept { return less(x, y); }
inline expr operator<=(const operand &x, const operand &y) noexcept { return less_equal(x, y); }
inline expr operator>(const operand &x, const operand &y) noexcept { return greater(x, y); }
inline expr operator>=(const operand &x, const operand &y) noexcept { return greater_equal(x, y); }
inline expr operator&(const operand &x, const operand &y) noexcept { return bitwise_and(x, y); }
inline expr operator|(const operand &x, const operand &y) noexcept { return bitwise_or(x, y); }
inline expr operator^(const operand &x, const operand &y) noexcept { return bitwise_xor(x, y); }
inline expr operator~(const operand &x) noexcept { return bitwise_not(x); }

template <class D> expr members<D>::operator()(DUET_HPP_INDEX_PLAIN) const noexcept
{
    return index(operand(self(), w), a, b, c, d, e, f, g, h, w);
}
template <class D> expr members<D>::T(location w) const noexcept { return transpose(operand(self(), w)); }
template <class D>
template <class... N>
expr members<D>::reshape(first_of<int64_t> size, N... more) const noexcept
{
    return duet::reshape(operand(self(), size.where), size.and_more(more...));
}
template <class D>
template <class... N>
expr members<D>::permute(first_of<int> axis, N... more) const noexcept
{
    return duet::permute(operand(self(), axis.where), axis.and_more(more...));
}

/* Makes a persistent formula from e: statements can evaluate it any number of times. Its matrices must
 * exist until the last evaluation. The destructor of the result frees it. */
inline expr hold(const operand &e) noexcept
{
    expr made(duet_hold_at(e.get(), e.site()));
    made.o = expr::held;
    return made;
}

/* ---- matrices --------------------------------------------------------------------------------- */

/* The elements of a matrix in host memory, as duet::matrix::read returns them. They are valid until the
 * next call that uses the matrix. e(i, j) is an element by its indices, e[i] by its number in row-major
 * order. begin() and data() need a matrix without gaps, that is, not a view of a part: clone() it. */
template <class T> class elements
{
    T *p = nullptr;
    duet::shape sizes, strides;
    bool dense = true;
    location w;

  public:
    elements(T *first, const duet_matrix *m, location where) noexcept : p(first), w(where)
    {
        int64_t step = 1;
        for (int i = 0; i < duet_rank(m); i++) {
            sizes.add(duet_size(m, i));
            strides.add(duet_stride(m, i));
        }
        for (int i = sizes.size(); i-- > 0; step *= sizes[i])
            dense = dense && (sizes[i] == 1 || strides[i] == step);
    }
    const duet::shape &shape() const noexcept { return sizes; }
    std::size_t size() const noexcept { return static_cast<std::size_t>(p ? sizes.product() : 0); }
    bool is_dense() const noexcept { return dense || size() < 2; }
    T *data() const
    {
        if (!is_dense()) detail::raise(DUET_BAD_ARGUMENT, "the matrix is a view with gaps: use clone()", w);
        return p;
    }
    T *begin() const { return data(); }
    T *end() const { return data() + size(); }
    T &operator[](std::size_t i) const noexcept
    {
        if (dense) return p[i];
        int64_t at = 0, left = static_cast<int64_t>(i);
        for (int a = sizes.size(); a-- > 0; left /= sizes[a]) at += left % sizes[a] * strides[a];
        return p[at];
    }
    template <class... I> T &operator()(I... i) const noexcept
    {
        int a = 0;
        int64_t at = 0;
        ((at += static_cast<int64_t>(i) * strides[a++]), ...);
        return p[at];
    }
};

/* An element type as a parameter, with the line of the call. */
struct typed {
    dtype type;
    location where;
    typed(dtype t, location w = location::here()) noexcept : type(t), where(w) {}
};

class [[nodiscard]] matrix : public members<matrix>
{
    duet_matrix *m = nullptr;

    /* Copies n elements in row-major order, converted to the type. */
    template <class T> void fill(dtype type, const T *p, std::size_t n, const duet::shape &s, location w)
    {
        if (s.product() != static_cast<int64_t>(n))
            return detail::raise(DUET_BAD_SHAPE, "the shape needs another number of elements", w);
        static const T nothing{}; /* what an empty array points to */
        duet_matrix *from =
            detail::made((duet_from_array_shape)(n ? p : &nothing, dtype_of<T>(), s.size(), s.data()), w);
        m = from;
        if (type == dtype_of<T>() || !from) return;
        m = duet_eval_at(duet_cast_at(duet_of_matrix(from), type, detail::site(w)), detail::site(w));
        duet_free(&from);
        detail::check(m, w);
    }
    template <class T> void fill(dtype type, std::initializer_list<std::initializer_list<T>> rows, location w)
    {
        const std::size_t columns = rows.size() ? rows.begin()->size() : 0;
        const std::unique_ptr<T[]> packed(new T[rows.size() * columns + 1]);
        T *p = packed.get();
        for (const auto &row : rows) {
            if (row.size() != columns)
                return detail::raise(DUET_BAD_SHAPE, "the rows have different sizes", w);
            for (const T &x : row) *p++ = x;
        }
        fill(type, packed.get(), rows.size() * columns, { rows.size(), columns }, w);
    }
    matrix &done(duet_status s, location w)
    {
        detail::check(s, w);
        return *this;
    }
    template <class P> P *access(P *p, location w) const
    {
        return p || (m && !count()) ? p : detail::check(p, w);
    }
    /* Are the elements of type T? An empty matrix is an error of the C function. */
    template <class T> bool has() const noexcept
    {
        if constexpr (std::is_void_v<T>) return true;
        else return !m || type() == dtype_of<T>();
    }
    template <class T> T *mistyped(location w) const
    {
        detail::raise(DUET_BAD_TYPE, "the matrix has elements of another type", w);
        return nullptr;
    }
    static matrix view(duet_matrix *v, location w) { return matrix(detail::made(v, w)); }
    static bool one_stride_each(const duet::shape &s, const duet::shape &stride, const char *who, location w)
    {
        if (s.size() == stride.size()) return true;
        const std::string text = std::string(who) + " needs one stride for each axis";
        detail::raise(DUET_BAD_ARGUMENT, text.c_str(), w);
        return false;
    }
    template <class T> using number = std::enable_if_t<detail::is_element<T>, int>;

  public:
    matrix() noexcept {}
    explicit matrix(duet_matrix *made) noexcept : m(made) {} /* frees it in the end */
    matrix(matrix &&from) noexcept : m(from.release()) {}
    ~matrix() { duet_free(&m); }

    /* Zeros: duet::matrix(duet::f32, 2, 3). */
    template <class... N, std::enable_if_t<detail::are_integers<N...>, int> = 0>
    explicit matrix(typed t, N... size) : matrix(t, duet::shape(size...))
    {
    }
    matrix(typed t, const duet::shape &s)
        : m(detail::made((duet_new_shape)(t.type, s.size(), s.data()), t.where))
    {
    }

    /* The result of a formula: duet::matrix y = a * x. */
    matrix(const expr &e, location w = location::here())
        : m(detail::check(duet_eval_at(e.use(), detail::site(w)), w))
    {
    }

    /* Elements: { 1.0f, 2.0f }, { { 1.0, 2.0 }, { 3.0, 4.0 } }, also after a type; or a container. */
    template <class T, number<T> = 0> matrix(std::initializer_list<T> list, location w = location::here())
    {
        fill(dtype_of<T>(), list.begin(), list.size(), { list.size() }, w);
    }
    template <class T, number<T> = 0>
    matrix(std::initializer_list<std::initializer_list<T>> rows, location w = location::here())
    {
        fill(dtype_of<T>(), rows, w);
    }
    template <class T, number<T> = 0> matrix(typed t, std::initializer_list<T> list)
    {
        fill(t.type, list.begin(), list.size(), { list.size() }, t.where);
    }
    template <class T, number<T> = 0> matrix(typed t, std::initializer_list<std::initializer_list<T>> rows)
    {
        fill(t.type, rows, t.where);
    }
    matrix(typed t, std::initializer_list<double> list)
    {
        fill(t.type, list.begin(), list.size(), { list.size() }, t.where);
    }
    template <class C, class T = detail::element_of<C>, number<T> = 0>
    explicit matrix(const C &c, location w = location::here())
    {
        fill(dtype_of<T>(), std::data(c), std::size(c), { std::size(c) }, w);
    }
    template <class C, class T = detail::element_of<C>, number<T> = 0>
    matrix(const C &c, const duet::shape &s, location w = location::here())
    {
        fill(dtype_of<T>(), std::data(c), std::size(c), s, w);
    }

    template <class... N> static matrix zeros(typed t, N... size)
    {
        const duet::shape s(size...);
        return matrix(detail::made((duet_zeros_shape)(t.type, s.size(), s.data()), t.where));
    }
    template <class... N> static matrix ones(typed t, N... size)
    {
        const duet::shape s(size...);
        return matrix(detail::made((duet_ones_shape)(t.type, s.size(), s.data()), t.where));
    }
    template <class... N> static matrix full(typed t, const operand &value, N... size)
    {
        const duet::shape s(size...);
        return matrix(detail::made((duet_full_shape)(t.type, value.get(), s.size(), s.data()), t.where));
    }
    static matrix eye(typed t, int64_t n) { return matrix(detail::made((duet_eye)(t.type, n), t.where)); }
    static matrix arange(typed t, double start, double stop, double step = 1)
    {
        return matrix(detail::made((duet_arange)(t.type, start, stop, step), t.where));
    }
    static matrix linspace(typed t, double start, double stop, int64_t n)
    {
        return matrix(detail::made((duet_linspace)(t.type, start, stop, n), t.where));
    }
    /* The array of a .npy file, or the array `name` of a .npz file. */
    static matrix load(const std::string &path, location w = location::here())
    {
        return matrix(detail::made((duet_load_npy)(path.c_str()), w));
    }
    static matrix load(const std::string &path, const std::string &name, location w = location::here())
    {
        return matrix(detail::made((duet_load_npz)(path.c_str(), name.c_str()), w));
    }
    /* A Matrix Market file. */
    static matrix load_market(const std::string &path, location w = location::here())
    {
        return matrix(detail::made((duet_load_market)(path.c_str()), w));
    }
    /* The next array of a stream; and the next matrix in Matrix Market's format. At the end of the stream
     * they throw an error with the status DUET_END_OF_FILE. */
    static matrix read_npy(std::FILE *in, location w = location::here())
    {
        return matrix(detail::made((duet_read_npy)(in), w));
    }
    static matrix read_market(std::FILE *in, location w = location::here())
    {
        return matrix(detail::made((duet_read_market)(in), w));
    }
    /* The n x n magic square. */
    static matrix magic(typed t, int64_t n)
    {
        matrix x(t, n, n);
        if (x.m) detail::check((duet_magic)(x.m), t.where);
        return x;
    }
    /* A matrix that uses the caller's memory: row-major without gaps, column-major, or with other strides. */
    template <class T> static matrix wrap(T *p, const duet::shape &s, location w = location::here())
    {
        return matrix(detail::made((duet_wrap_shape)(p, dtype_of<T>(), s.size(), s.data()), w));
    }
    template <class T> static matrix wrap_columns(T *p, const duet::shape &s, location w = location::here())
    {
        return matrix(detail::made((duet_wrap_columns_shape)(p, dtype_of<T>(), s.size(), s.data()), w));
    }
    template <class T>
    static matrix wrap_strided(T *first, const duet::shape &s, const duet::shape &stride,
                               location w = location::here())
    {
        if (!one_stride_each(s, stride, "wrap_strided", w)) return matrix();
        return matrix(
            detail::made((duet_wrap_strided)(first, dtype_of<T>(), s.size(), s.data(), stride.data()), w));
    }
    /* The same of memory that is only read: writing to the matrix is an error. And of memory of a GPU. */
    template <class T>
    static matrix wrap_const(const T *p, const duet::shape &s, location w = location::here())
    {
        return matrix(detail::made((duet_wrap_const_shape)(p, dtype_of<T>(), s.size(), s.data()), w));
    }
    template <class T>
    static matrix wrap_const_strided(const T *first, const duet::shape &s, const duet::shape &stride,
                                     location w = location::here())
    {
        if (!one_stride_each(s, stride, "wrap_const_strided", w)) return matrix();
        return matrix(
            detail::made((duet_wrap_const_strided)(first, dtype_of<T>(), s.size(), s.data(), stride.data()),
                         w));
    }
    template <class T> static matrix wrap_device(T *p, const duet::shape &s, location w = location::here())
    {
        return matrix(detail::made((duet_wrap_device_shape)(p, dtype_of<T>(), s.size(), s.data()), w));
    }
    template <class T>
    static matrix wrap_device_strided(T *first, const duet::shape &s, const duet::shape &stride,
                                      location w = location::here())
    {
        if (!one_stride_each(s, stride, "wrap_device_strided", w)) return matrix();
        return matrix(
            detail::made((duet_wrap_device_strided)(first, dtype_of<T>(), s.size(), s.data(), stride.data()),
                         w));
    }
    matrix clone(location w = location::here()) const { return matrix(detail::made((duet_copy)(m), w)); }
    /* Declares that the matrix is symmetric, triangular, ...: writes keep it (duet/structure.h). */
    void declare(duet_structure s, location w = location::here()) { detail::check((duet_declare)(m, s), w); }
    duet_structure structure() const noexcept { return duet_structure_of(m); }
    /* Reads the array of a .npy file into this matrix, which must have its type and shape. */
    void load_into(const std::string &path, location w = location::here())
    {
        detail::check((duet_load_npy_into)(path.c_str(), m), w);
    }
    void save(const std::string &path, location w = location::here()) const
    {
        detail::check((duet_save_npy)(path.c_str(), m), w);
    }
    void save_market(const std::string &path, location w = location::here()) const
    {
        detail::check((duet_save_market)(path.c_str(), m), w);
    }
    void write_npy(std::FILE *out, location w = location::here()) const
    {
        detail::check((duet_write_npy)(out, m), w);
    }
    void write_market(std::FILE *out, location w = location::here()) const
    {
        detail::check((duet_write_market)(out, m), w);
    }
    void print_octave(std::FILE *out, location w = location::here()) const
    {
        detail::check((duet_print_octave)(out, m), w);
    }
    /* Changes the shape; elements stay in row-major order, and new ones are 0. */
    void resize(const duet::shape &s, location w = location::here())
    {
        detail::check((duet_resize_shape)(m, s.size(), s.data()), w);
    }
    /* How the matrix lies on a group: its group, or NULL; the axis along which it is split, or -1; and the
     * elements along that axis that a rank has. */
    duet_group *group_of() const noexcept { return duet_group_of(m); }
    int split_axis() const noexcept { return duet_split_axis(m); }
    struct split_range {
        int64_t first, count;
    };
    split_range split_part(int of, location w = location::here()) const
    {
        split_range p = {};
        detail::check((duet_split_part)(m, of, &p.first, &p.count), w);
        return p;
    }
    bool valid_on(duet_place place) const noexcept { return duet_valid_on(m, place) != 0; }
    bool shares_memory(const matrix &x) const noexcept { return duet_share_memory(m, x.m) != 0; }

    /* Assignment. The second one has an unusual parameter: `const matrix &` and `matrix &&` would also
     * accept a formula, converted to a matrix, and the compiler could not choose. */
    matrix &operator=(const operand &e) { return set(e, e.where()); }
    matrix &operator=(matrix &) = delete; /* write y.set(x), or y = x.clone() */
    template <class M, std::enable_if_t<std::is_same_v<M, const matrix &>, int> = 0>
    matrix &operator=(M &&) = delete;
    template <class M, std::enable_if_t<std::is_same_v<M, matrix>, int> = 0>
    matrix &operator=(M &&from) &noexcept
    {
        matrix taken(from.release());
        swap(taken);
        return *this;
    }
    template <class M, std::enable_if_t<std::is_same_v<M, matrix>, int> = 0>
    matrix &operator=(M &&) && = delete; /* x.row(0) = y.row(1): write x.row(0) = y(1) */

    /* Evaluates e into the elements of this matrix; if it is empty, into a new one. */
    matrix &set(const operand &e, location w)
    {
        if (m) return done(duet_set_at(m, e.get(), detail::site(w)), w);
        m = detail::check(duet_eval_at(e.get(), detail::site(w)), w);
        return *this;
    }
    matrix &set(const operand &e) { return set(e, e.where()); }
    /* The same on the given device, and in the given math mode. */
    matrix &set_on(duet_place place, const operand &e);
    matrix &set_math(duet_math_mode mode, const operand &e);
    matrix &operator+=(const operand &e) { return done(duet_iadd_at(m, e.get(), e.site()), e.where()); }
    matrix &operator-=(const operand &e) { return done(duet_isub_at(m, e.get(), e.site()), e.where()); }
    matrix &operator*=(const operand &e) { return done(duet_imul_at(m, e.get(), e.site()), e.where()); }
    matrix &operator/=(const operand &e) { return done(duet_idiv_at(m, e.get(), e.site()), e.where()); }
    void swap(matrix &x) noexcept { std::swap(m, x.m); }
    friend void swap(matrix &x, matrix &y) noexcept { x.swap(y); }

    duet_matrix *get() const noexcept { return m; } /* for the C functions */
    duet_matrix *release() noexcept { return std::exchange(m, nullptr); }
    bool empty() const noexcept { return !m; }
    dtype type() const noexcept { return duet_type(m); }
    int rank() const noexcept { return duet_rank(m); }
    int64_t size(int axis) const noexcept { return duet_size(m, axis); }
    int64_t stride(int axis) const noexcept { return duet_stride(m, axis); }
    int64_t count() const noexcept { return duet_count(m); }
    duet::shape shape() const noexcept
    {
        duet::shape s;
        for (int i = 0; i < rank(); i++) s.add(size(i));
        return s;
    }

    /* The elements in host memory, for reading, for changing, and for writing all of them. T must be the
     * C++ type of the elements: bool for boolean, std::complex<float> for c64. */
    template <class T> elements<const T> read(location w = location::here()) const
    {
        return { static_cast<const T *>(access(duet_read_as(m, dtype_of<T>()), w)), m, w };
    }
    template <class T> elements<T> update(location w = location::here())
    {
        return { static_cast<T *>(access(duet_update_as(m, dtype_of<T>()), w)), m, w };
    }
    template <class T> elements<T> overwrite(location w = location::here())
    {
        return { static_cast<T *>(access(duet_overwrite_as(m, dtype_of<T>()), w)), m, w };
    }

    /* Copies the elements to an array of count() elements, or to a new vector, in row-major order. */
    template <class T> void to_array(T *array, location w = location::here()) const
    {
        if (!has<T>()) return (void)mistyped<T>(w);
        detail::check((duet_to_array)(m, array), w);
    }
    template <class T> std::vector<T> to_vector(location w = location::here()) const
    {
        const std::size_t n = static_cast<std::size_t>(count());
        const std::unique_ptr<T[]> array(new T[n + 1]()); /* std::vector<bool> has no array */
        to_array(array.get(), w);
        return std::vector<T>(array.get(), array.get() + n);
    }

    /* Pointers to the elements in GPU memory, for your own CUDA kernels on the stream duet::stream(). T is
     * the type of the elements, or void, which is not compared with it. */
    template <class T = void> const T *device_read(location w = location::here()) const
    {
        return has<T>() ? static_cast<const T *>(access((duet_device_read)(m), w)) : mistyped<T>(w);
    }
    template <class T = void> T *device_update(location w = location::here())
    {
        return has<T>() ? static_cast<T *>(access((duet_device_update)(m), w)) : mistyped<T>(w);
    }
    template <class T = void> T *device_overwrite(location w = location::here())
    {
        return has<T>() ? static_cast<T *>(access((duet_device_overwrite)(m), w)) : mistyped<T>(w);
    }

    /* Views: matrices that share the elements of this one. Writing to the view writes to this matrix. */
    matrix indexed(DUET_HPP_INDEX)
    {
        const detail::index_list list = DUET_HPP_INDEX_LIST;
        return view((duet_indexed_by)(m, list.count, list.entry), w);
    }
#define DUET_HPP_VIEW(name, parameters, arguments)                                                           \
    matrix name(DUET_HPP_LIST parameters location w = location::here())                                      \
    {                                                                                                        \
        return view((duet_##name)(m DUET_HPP_LIST arguments), w);                                            \
    }
#define DUET_HPP_LIST(...) __VA_ARGS__
    DUET_HPP_VIEW(stepped, (int axis, int64_t start, int64_t stop, int64_t step, ),
                  (, axis, start, stop, step))
    DUET_HPP_VIEW(picked, (int axis, int64_t i, ), (, axis, i))
    DUET_HPP_VIEW(flipped, (int axis, ), (, axis))
    DUET_HPP_VIEW(slice, (int64_t first, int64_t n, ), (, first, n))
    DUET_HPP_VIEW(row, (int64_t i, ), (, i))
    DUET_HPP_VIEW(column, (int64_t j, ), (, j))
    DUET_HPP_VIEW(submatrix, (int64_t i, int64_t j, int64_t rows, int64_t cols, ), (, i, j, rows, cols))
    DUET_HPP_VIEW(diagonal, (int64_t offset, ), (, offset))
    DUET_HPP_VIEW(transposed, (), ())
    DUET_HPP_VIEW(expanded, (int axis, ), (, axis))
    DUET_HPP_VIEW(squeezed, (int axis, ), (, axis))
#undef DUET_HPP_VIEW
#undef DUET_HPP_LIST
    template <class... N> matrix permuted(first_of<int> axis, N... more)
    {
        const axes a = axis.and_more(more...);
        return view((duet_permuted_axes)(m, a.size(), a.data()), axis.where);
    }
    template <class... N> matrix reshaped(first_of<int64_t> size, N... more)
    {
        const duet::shape s = size.and_more(more...);
        return view((duet_reshaped_shape)(m, s.size(), s.data()), size.where);
    }
    template <class... N> matrix broadcast_to(first_of<int64_t> size, N... more)
    {
        const duet::shape s = size.and_more(more...);
        return view((duet_broadcast_to_shape)(m, s.size(), s.data()), size.where);
    }
    std::vector<matrix> split(int axis, int parts, location w = location::here())
    {
        std::vector<duet_matrix *> part(parts > 0 ? static_cast<std::size_t>(parts) : 1);
        std::vector<matrix> views;
        views.reserve(part.size());
        detail::check((duet_split)(m, axis, parts, part.data()), w);
        for (duet_matrix *p : part)
            if (p) views.push_back(view(p, w));
        return views;
    }
};

inline operand::operand(const matrix &of, location where) noexcept : kind(of_matrix), m(of.get()), w(where) {}

namespace detail
{
/* Writes to a stream what print(file) writes to a file, if it returns OK. */
template <class P> duet_status print_to(std::ostream &out, P &&print)
{
    char *text = nullptr;
    std::size_t size = 0;
    std::FILE *file = open_memstream(&text, &size);
    const duet_status s = file ? print(file) : DUET_NO_MEMORY;
    if (file) std::fclose(file);
    const std::unique_ptr<char, void (*)(void *)> owner(text, std::free);
    if (s == DUET_OK) out.write(text, static_cast<std::streamsize>(size));
    return s;
}
} // namespace detail

/* The gradients of formula y with respect to x (duet/gradient.h). */
inline expr grad(const operand &y, const matrix &x) noexcept
{
    return expr(duet_grad_at(y.get(), x.get(), y.site()));
}
inline expr vjp(const operand &y, const matrix &x, const operand &g) noexcept
{
    const duet_expr first = y.get();
    return expr(duet_vjp_at(first, x.get(), g.get(), y.site()));
}

/* Prints the elements as NumPy prints an array; a formula is evaluated first. If that fails, failbit is
 * set. */
inline std::ostream &operator<<(std::ostream &out, const matrix &m)
{
    const duet_status s = detail::print_to(out, [&](std::FILE *file) { return (duet_print)(file, m.get()); });
    if (s != DUET_OK) out.setstate(std::ios_base::failbit);
    return out;
}
inline std::ostream &operator<<(std::ostream &out, const expr &e) { return out << matrix(e); }

/* ---- statements ------------------------------------------------------------------------------- */

/* Evaluates e into a new matrix. */
inline matrix eval(const operand &e)
{
    return matrix(detail::check(duet_eval_at(e.get(), e.site()), e.where()));
}

/* Evaluates a formula of one element and returns it as a number: duet::item(duet::sum(x)). */
template <class T = double> T item(const operand &e)
{
    T x{};
    detail::check(duet_item_at(e.get(), dtype_of<T>(), &x, e.site()), e.where());
    return x;
}

namespace detail
{
template <class> struct operand_for {
    using type = operand;
};
template <class... T, std::size_t... I>
duet_status items(std::tuple<T...> &x, std::index_sequence<I...>,
                  const typename operand_for<T>::type &...e) noexcept
{
    const operand *const each[] = { &e... };
    const duet_item_entry list[] = { { e.get(), dtype_of<T>(), &std::get<I>(x) }... };
    return (duet_items_at)(list, static_cast<int>(sizeof...(T)), each[0]->site());
}
} // namespace detail
/* Evaluates formulas of one element each, in as few passes as set_all needs, and returns them as numbers:
 *     const auto [mean, at] = duet::items<double, int>(duet::mean(x), duet::argmax(x)); */
template <class... T> std::tuple<T...> items(const typename detail::operand_for<T>::type &...e)
{
    static_assert(sizeof...(T) > 0, "the types of the numbers are needed: items<double, int>(e, f)");
    std::tuple<T...> x;
    const location w[] = { e.where()... };
    detail::check(detail::items(x, std::index_sequence_for<T...>{}, e...), w[0]);
    return x;
}

/* A parameter for the matrix that a function writes to: a matrix, or a view of one such as x.row(0). It
 * refers to its argument: use it for parameters only. */
class destination
{
    matrix *m;

  public:
    destination(matrix &x) noexcept : m(&x) {}
    destination(matrix &&view) noexcept : m(&view) {}
    matrix &operator*() const noexcept { return *m; }
    duet_matrix *get() const noexcept { return m->get(); }
};

namespace detail
{
/* Returns a new matrix of the type and shape of e. If it is empty, *s is the error. */
inline matrix like(duet_expr e, location w, duet_status *s) noexcept
{
    *s = duet_expr_status(e);
    if (*s != DUET_OK) return matrix();
    int64_t size[DUET_RANK_MAX] = {};
    for (int i = 0; i < duet_expr_rank(e); i++) size[i] = duet_expr_size(e, i);
    matrix m((duet_new_shape)(duet_expr_type(e), duet_expr_rank(e), size));
    if (m.empty()) *s = duet_error_status();
    else duet_created_at(m.get(), site(w));
    return m;
}
/* Runs write(to, e), a statement that writes to m and consumes e. If m is empty, the statement writes to a
 * new matrix of the type and shape of e, which becomes m if the statement succeeds. */
template <class W> duet_status write_to(matrix &m, const operand &e, W &&write) noexcept
{
    if (m.get()) return write(m.get(), e.get());
    const expr x(e.get());
    if (duet_expr_status(x.get()) != DUET_OK) return write(nullptr, x.use()); /* for its error */
    duet_status s;
    matrix made = like(x.get(), e.where(), &s);
    if (s == DUET_OK) s = write(made.get(), x.use());
    if (s == DUET_OK) m.swap(made);
    return s;
}
inline duet_status set_on(duet_place place, matrix &m, const operand &e) noexcept
{
    return write_to(m, e,
                    [&](duet_matrix *to, duet_expr x) { return duet_set_on_at(place, to, x, e.site()); });
}
inline duet_status set_math(duet_math_mode mode, matrix &m, const operand &e) noexcept
{
    return write_to(m, e,
                    [&](duet_matrix *to, duet_expr x) { return duet_set_math_at(mode, to, x, e.site()); });
}
} // namespace detail
inline matrix &matrix::set_on(duet_place place, const operand &e)
{
    return done(detail::set_on(place, *this, e), e.where());
}
inline matrix &matrix::set_math(duet_math_mode mode, const operand &e)
{
    return done(detail::set_math(mode, *this, e), e.where());
}

/* Evaluates several statements, as duet_set_all: duet::set_all({ { m, duet::mean(x) }, { d, x - y } }).
 * An empty destination gets a new matrix. */
class assignment
{
    matrix *to;
    operand value;
    friend duet_status try_statements(std::initializer_list<assignment> list, location w) noexcept;
    friend duet_status explain_statements(std::FILE *out, std::initializer_list<assignment> list,
                                          location w) noexcept;

  public:
    assignment(matrix &m, const operand &e) noexcept : to(&m), value(e) {}
    assignment(matrix &&view, const operand &e) noexcept : to(&view), value(e) {}
};
inline duet_status try_statements(std::initializer_list<assignment> list, location w) noexcept
{
    constexpr int most = 65; /* one more than allowed, for the error */
    duet_assignment a[most];
    matrix made[most];
    int n = 0;
    for (const assignment &s : list) {
        if (n == most) break;
        const expr e(s.value.get());
        duet_status failed; /* duet_set_all_at returns it */
        if (s.to->empty()) made[n] = detail::like(e.get(), w, &failed);
        a[n] = { made[n].get() ? made[n].get() : s.to->get(), e.use() };
        n++;
    }
    const duet_status status = duet_set_all_at(a, n, detail::site(w));
    for (int i = 0; status == DUET_OK && i < n; i++)
        if (made[i].get()) list.begin()[i].to->swap(made[i]);
    return status;
}
inline void set_all(std::initializer_list<assignment> list, location w = location::here())
{
    detail::check(try_statements(list, w), w);
}

/* ---- without exceptions ----------------------------------------------------------------------- */

/* Calls a function, and returns its result or the error that it would throw. If the function returns
 * nothing or a reference, try_call returns an outcome, else a result. Exceptions of other types leave
 * try_call. Without exceptions (-fno-exceptions) the function continues after an error, and try_call returns
 * the first one.
 *     duet::result<duet::matrix> m = duet::try_call([&] { return duet::matrix::load(path); }); */
template <class F> auto try_call(F &&function)
{
    using returned = std::invoke_result_t<F &>;
    constexpr bool nothing = std::is_void_v<returned> || std::is_reference_v<returned>;
    using value = std::conditional_t<nothing, int, std::remove_cv_t<returned>>;
    const auto call = [&]() -> value {
        if constexpr (nothing) return (void)function(), 0;
        else return function();
    };
    const auto with = [](outcome o, [[maybe_unused]] value x) {
        if constexpr (nothing) return o;
        else return result<value>(std::move(o), std::move(x));
    };
#ifdef __cpp_exceptions
    try {
        return with(outcome(DUET_OK), call());
    } catch (const error &e) {
        return with(outcome(e.status(), e.what()), value());
    }
#else
    outcome first(DUET_OK);
    outcome *const outer = std::exchange(detail::captured, &first);
    value x = call();
    detail::captured = outer;
    return with(std::move(first), std::move(x));
#endif
}
inline outcome try_set(const destination &to, const operand &e) noexcept
{
    if (to.get()) return outcome(duet_set_at(to.get(), e.get(), e.site()));
    matrix made(duet_eval_at(e.get(), e.site()));
    const duet_status s = made.empty() ? duet_error_status() : DUET_OK;
    if (s == DUET_OK) (*to).swap(made);
    return outcome(s);
}
inline outcome try_set_on(duet_place place, const destination &to, const operand &e) noexcept
{
    return outcome(detail::set_on(place, *to, e));
}
inline outcome try_set_math(duet_math_mode mode, const destination &to, const operand &e) noexcept
{
    return outcome(detail::set_math(mode, *to, e));
}
inline result<matrix> try_eval(const operand &e) noexcept
{
    matrix made(duet_eval_at(e.get(), e.site()));
    const duet_status s = made.empty() ? duet_error_status() : DUET_OK;
    return { s, std::move(made) };
}
template <class T = double> result<T> try_item(const operand &e) noexcept
{
    T x{};
    const duet_status s = duet_item_at(e.get(), dtype_of<T>(), &x, e.site());
    return { s, x };
}
inline outcome try_set_all(std::initializer_list<assignment> list, location w = location::here()) noexcept
{
    return outcome(try_statements(list, w));
}
inline result<matrix> try_new(typed t, const shape &size) noexcept
{
    duet_matrix *m = (duet_new_shape)(t.type, size.size(), size.data());
    if (m) duet_created_at(m, detail::site(t.where));
    return { m ? DUET_OK : duet_error_status(), matrix(m) };
}

/* ---- blocks: they last as long as the object --------------------------------------------------- */

/* All statements run on one device: duet::on_gpu block; or duet::on block(DUET_CPU). */
class on
{
    duet_scope s;

  public:
    explicit on(duet_place place) noexcept : s(duet_scope_open(place)) {}
    on(const on &) = delete;
    on &operator=(const on &) = delete;
    ~on() { duet_scope_close(&s); }
};
struct on_gpu : on {
    on_gpu() noexcept : on(DUET_GPU) {}
};
struct on_cpu : on {
    on_cpu() noexcept : on(DUET_CPU) {}
};

/* Products and convolutions on the GPU may use this arithmetic: duet::math block(DUET_MATH_SPLIT). */
class math
{
    duet_scope s;

  public:
    explicit math(duet_math_mode mode) noexcept : s(duet_math_open(mode)) {}
    math(const math &) = delete;
    math &operator=(const math &) = delete;
    ~math() { duet_math_close(&s); }
};

/* Statements use at most so many threads on the CPU: duet::threads block(1). */
class threads
{
    duet_scope s;

  public:
    explicit threads(int most) noexcept : s(duet_threads_open(most)) {}
    threads(const threads &) = delete;
    threads &operator=(const threads &) = delete;
    ~threads() { duet_threads_close(&s); }
};

/* May statements copy matrices between devices? duet::forbid_transfers block;
 * or duet::transfers block(DUET_TRANSFERS_REPORTED). */
class transfers
{
    duet_scope s;

  public:
    explicit transfers(duet_transfers mode) noexcept : s(duet_transfers_open(mode)) {}
    transfers(const transfers &) = delete;
    transfers &operator=(const transfers &) = delete;
    ~transfers() { duet_transfers_close(&s); }
};
struct forbid_transfers : transfers {
    forbid_transfers() noexcept : transfers(DUET_TRANSFERS_FORBIDDEN) {}
};

/* Stores how long the statements took, also those on the GPU: double seconds; { duet::timed t(seconds); } */
class timed
{
    duet_timing t;

  public:
    explicit timed(double &seconds) noexcept : t(duet_timing_open(&seconds)) {}
    timed(const timed &) = delete;
    timed &operator=(const timed &) = delete;
    ~timed() { duet_timing_close(&t); }
};

/* Statements print their plans and do not run: duet::explaining block(stdout). */
class explaining
{
    duet_explaining x;

  public:
    explicit explaining(std::FILE *out) noexcept : x(duet_explain_open(out)) {}
    explaining(const explaining &) = delete;
    explaining &operator=(const explaining &) = delete;
    ~explaining() { duet_explain_close(&x); }
};

/* Recorded statements. duet::record runs a function and records its statements; replay runs them again.
 *     duet::recording step = duet::record([&] { y = duet::matmul(a, x); x = y / duet::norm(y); });
 *     for (int i = 0; i < 100; i++) step.replay();
 * Do not free or move the matrices before the last replay. */
class [[nodiscard]] recording
{
    duet_recording *r = nullptr;

  public:
    recording() noexcept {}
    explicit recording(duet_recording *made) noexcept : r(made) {}
    recording(recording &&from) noexcept : r(std::exchange(from.r, nullptr)) {}
    recording &operator=(recording &&from) noexcept
    {
        std::swap(r, from.r);
        return *this;
    }
    ~recording() { duet_recording_free(&r); }
    duet_recording *get() const noexcept { return r; }
    void replay(location w = location::here()) { detail::check((duet_replay)(r), w); }
};
template <class F> recording record(F &&statements, location w = location::here())
{
    struct ending { /* also ends the recording if a statement throws */
        bool on = true;
        ~ending()
        {
            if (!on) return;
            const recording unfinished((duet_record_end)());
        }
    };
    detail::check((duet_record_begin)(), w);
    ending end;
    statements();
    end.on = false;
    return recording(detail::check((duet_record_end)(), w));
}

/* ---- groups: several GPUs, several processes (duet/group.h) -------------------------------------- */

/* A group, which its destructor frees. It is moved, and not copied. Statements use its matrices like others.
 *     duet::group g = duet::group::local(4);
 *     duet::matrix x = g.split(duet::f32, 0, 1000, 64), w = g.replicated(duet::f32, 64, 10);
 *     duet::matrix y = duet::matmul(x, w); // split along axis 0
 * To use a group that C has made: duet::group g(duet_group_mpi(MPI_COMM_WORLD, DUET_AUTO)). */
class [[nodiscard]] group
{
    duet_group *g = nullptr;

  public:
    group() noexcept {}
    explicit group(duet_group *made) noexcept : g(made) {} /* frees it in the end */
    group(group &&from) noexcept : g(std::exchange(from.g, nullptr)) {}
    group &operator=(group &&from) noexcept
    {
        std::swap(g, from.g);
        return *this;
    }
    ~group() { duet_group_free(&g); }

    /* Of devices of this process. 0: all GPUs, or the CPU. */
    static group local(int ranks = 0, location w = location::here())
    {
        return group(detail::check((duet_group_local)(ranks), w));
    }

    duet_group *get() const noexcept { return g; } /* for the C functions */
    bool empty() const noexcept { return !g; }
    int ranks() const noexcept { return duet_group_ranks(g); }
    int rank() const noexcept { return duet_group_rank(g); } /* the first one in this process */
    int near() const noexcept { return duet_group_near(g); } /* how many are in this process */
    void timeout(double seconds, location w = location::here())
    {
        detail::check((duet_group_timeout)(g, seconds), w);
    }
    /* Prints the devices, and how they are connected. */
    void info(std::FILE *out) const noexcept { duet_group_info(out, g); }
    void info(std::ostream &stream, location w = location::here()) const
    {
        detail::check(detail::print_to(stream, [&](std::FILE *out) { return info(out), DUET_OK; }), w);
    }

    /* Zeros. g.split(duet::f32, 0, 1000, 64): each rank has a part of axis 0; replicated: each rank has all
     * elements. */
    template <class... N> matrix split(typed t, int axis, N... size) const
    {
        const duet::shape s(size...);
        return matrix(detail::made((duet_new_split_shape)(g, t.type, axis, s.size(), s.data()), t.where));
    }
    template <class... N> matrix replicated(typed t, N... size) const
    {
        const duet::shape s(size...);
        return matrix(detail::made((duet_new_replicated_shape)(g, t.type, s.size(), s.data()), t.where));
    }
};

/* ---- optimisers of neural networks -------------------------------------------------------------- */

/* A matrix that may be missing, among the options of an optimiser. */
class optional_matrix
{
    duet_matrix *m = nullptr;

  public:
    optional_matrix() noexcept {}
    optional_matrix(matrix &x) noexcept : m(x.get()) {}
    optional_matrix(matrix &&view) noexcept : m(view.get()) {}
    duet_matrix *get() const noexcept { return m; }
};
/* Losses by class index. In C++20 write
 *     duet::nll_loss(x, target, { .weights = w, .reduction = duet::loss_sum }) */
struct class_loss_options {
    optional_matrix weights;
    duet_loss_reduction reduction = DUET_LOSS_MEAN;
    bool ignores = false;
    int64_t ignored = 0;
};
#define DUET_HPP_LOSS(name)                                                                                  \
    inline expr name(const operand &x, const operand &target, const class_loss_options &o = {}) noexcept     \
    {                                                                                                        \
        const duet_class_loss with = { o.weights.get(), o.reduction, o.ignores, o.ignored };                 \
        const duet_expr first = x.get();                                                                     \
        return expr(duet_##name##_at(first, target.get(), &with, x.site()));                                 \
    }
DUET_HPP_LOSS(nll_loss)
DUET_HPP_LOSS(cross_entropy_loss)
#undef DUET_HPP_LOSS
/* Options of optimisers (duet/optimizers.h). In C++20 write
 *     duet::sgd(w, g, 0.1, { .momentum = 0.9, .velocity = v }) */
struct sgd_options {
    double momentum = 0;
    optional_matrix velocity;
    bool nesterov = false;
    double decay = 0;
};
struct adam_options {
    double keep_mean = 0, keep_square = 0, epsilon = 0, decay = 0;
};
struct rmsprop_options {
    double keep = 0, epsilon = 0, momentum = 0;
    optional_matrix velocity;
    double decay = 0;
};
struct adagrad_options {
    double epsilon = 0, decay = 0;
};
inline void sgd(const destination &w, const operand &g, const operand &rate, const sgd_options &o = {})
{
    const duet_sgd_options with = { o.momentum, o.velocity.get(), o.nesterov, o.decay };
    const duet_expr first = g.get();
    detail::check(duet_sgd_at(w.get(), first, rate.get(), &with, g.site()), g.where());
}
#define DUET_HPP_ADAM(name)                                                                                  \
    inline void name(const destination &w, const operand &g, const destination &mean,                        \
                     const destination &square, const operand &rate, const operand &step,                    \
                     const adam_options &o = {})                                                             \
    {                                                                                                        \
        const duet_adam_options with = { o.keep_mean, o.keep_square, o.epsilon, o.decay };                   \
        const duet_expr first = g.get(), second = rate.get();                                                \
        detail::check(duet_##name##_at(w.get(), first, mean.get(), square.get(), second, step.get(), &with,  \
                                       g.site()),                                                            \
                      g.where());                                                                            \
    }
DUET_HPP_ADAM(adam)
DUET_HPP_ADAM(adamw)
#undef DUET_HPP_ADAM
inline void rmsprop(const destination &w, const operand &g, const destination &square, const operand &rate,
                    const rmsprop_options &o = {})
{
    const duet_rmsprop_options with = { o.keep, o.epsilon, o.momentum, o.velocity.get(), o.decay };
    const duet_expr first = g.get();
    detail::check(duet_rmsprop_at(w.get(), first, square.get(), rate.get(), &with, g.site()), g.where());
}
inline void adagrad(const destination &w, const operand &g, const destination &sum, const operand &rate,
                    const adagrad_options &o = {})
{
    const duet_adagrad_options with = { o.epsilon, o.decay };
    const duet_expr first = g.get();
    detail::check(duet_adagrad_at(w.get(), first, sum.get(), rate.get(), &with, g.site()), g.where());
}

/* ---- random numbers, noise, sequences ---------------------------------------------------------- */

inline void random_uniform(const destination &m, uint64_t seed, double low = 0, double high = 1,
                           location w = location::here())
{
    detail::check(duet_random_uniform_at(m.get(), seed, low, high, detail::site(w)), w);
}
inline void random_normal(const destination &m, uint64_t seed, double mean = 0, double deviation = 1,
                          location w = location::here())
{
    detail::check(duet_random_normal_at(m.get(), seed, mean, deviation, detail::site(w)), w);
}
inline void random_truncated_normal(const destination &m, uint64_t seed, double mean, double deviation,
                                    double low, double high, location w = location::here())
{
    detail::check(duet_random_truncated_normal_at(m.get(), seed, mean, deviation, low, high, detail::site(w)),
                  w);
}
inline void random_integers(const destination &m, uint64_t seed, int64_t low, int64_t high,
                            location w = location::here())
{
    detail::check(duet_random_integers_at(m.get(), seed, low, high, detail::site(w)), w);
}
inline void random_bernoulli(const destination &m, uint64_t seed, double p, location w = location::here())
{
    detail::check(duet_random_bernoulli_at(m.get(), seed, p, detail::site(w)), w);
}
inline void random_permutation(const destination &m, uint64_t seed, location w = location::here())
{
    detail::check(duet_random_permutation_at(m.get(), seed, detail::site(w)), w);
}
inline void random_sobol(const destination &m, uint64_t seed, uint64_t first, location w = location::here())
{
    detail::check(duet_random_sobol_at(m.get(), seed, first, detail::site(w)), w);
}

/* Noise. If `to` is empty, it becomes a new matrix of the type and shape of x. */
#define DUET_HPP_NOISE(name, parameters, arguments)                                                          \
    inline void noise_##name(const destination &to, const operand &x, uint64_t seed parameters)              \
    {                                                                                                        \
        const auto write = [&](duet_matrix *m, duet_expr e) {                                                \
            return duet_noise_##name##_at(m, e, seed arguments, x.site());                                   \
        };                                                                                                   \
        detail::check(detail::write_to(*to, x, write), x.where());                                           \
    }
#define DUET_HPP_LIST(...) __VA_ARGS__
DUET_HPP_NOISE(uniform, , )
DUET_HPP_NOISE(normal, , )
DUET_HPP_NOISE(logistic, , )
DUET_HPP_NOISE(ranged, DUET_HPP_LIST(, double top), DUET_HPP_LIST(, top))
DUET_HPP_NOISE(bernoulli, , )
#undef DUET_HPP_NOISE
#undef DUET_HPP_LIST

/* If `to` is empty, it becomes a new matrix of the type and shape of `from`. */
inline void shuffle(const destination &to, const matrix &from, int axis, uint64_t seed,
                    location w = location::here())
{
    const auto write = [&](duet_matrix *m, duet_expr e) {
        (void)duet_drop_at(e, nullptr);
        return duet_shuffle_at(m, from.get(), axis, seed, detail::site(w));
    };
    detail::check(detail::write_to(*to, operand(from, w), write), w);
}
inline void sequence(const destination &m, double start, double by, location w = location::here())
{
    detail::check(duet_sequence_at(m.get(), start, by, detail::site(w)), w);
}
inline void magic(const destination &m, location w = location::here())
{
    detail::check((duet_magic)(m.get()), w);
}

/* The matrix of a convolution, in an existing matrix or in a new one of the kernel's type, for an x of n
 * elements or of h x w elements. */
inline void convmtx(const destination &to, const matrix &kernel, duet_overlap part = overlap_full,
                    location w = location::here())
{
    detail::check(duet_convmtx_at(to.get(), kernel.get(), part, detail::site(w)), w);
}
inline void convmtx2(const destination &to, const matrix &kernel, int height, int width,
                     duet_overlap part = overlap_full, location w = location::here())
{
    detail::check(duet_convmtx2_at(to.get(), kernel.get(), height, width, part, detail::site(w)), w);
}
namespace detail
{
/* The number of results of a convolution of n elements with a kernel of m elements. */
inline int64_t results(int64_t n, int64_t m, duet_overlap part) noexcept
{
    if (n > INT64_MAX - m) return n; /* no matrix is that large */
    const int64_t all = part == overlap_full ? n + m - 1 : part == overlap_same ? n : n - m + 1;
    return all > 0 ? all : 0;
}
} // namespace detail
inline matrix convmtx(const matrix &kernel, int64_t n, duet_overlap part = overlap_full,
                      location w = location::here())
{
    matrix to({ kernel.type(), w }, detail::results(n, kernel.size(0), part), n);
    if (!to.empty()) convmtx(to, kernel, part, w);
    return to;
}
inline matrix convmtx2(const matrix &kernel, int height, int width, duet_overlap part = overlap_full,
                       location w = location::here())
{
    matrix to({ kernel.type(), w },
              detail::results(height, kernel.size(0), part) * detail::results(width, kernel.size(1), part),
              static_cast<int64_t>(height) * width);
    if (!to.empty()) convmtx2(to, kernel, height, width, part, w);
    return to;
}

/* ---- files --------------------------------------------------------------------------------------- */

/* Saves matrices with their names to a .npz file: save_npz(path, { { "x", x }, { "y", y } }). The list may
 * also be a container of pairs, such as std::map<std::string, duet::matrix>. */
struct named_matrix {
    std::string name;
    const matrix &m;
};
template <class L = std::initializer_list<named_matrix>>
void save_npz(const std::string &path, const L &list, location w = location::here())
{
    std::vector<duet_named> named;
    for (const auto &[name, m] : list) named.push_back({ name.c_str(), m.get() });
    detail::check((duet_save_npz)(path.c_str(), named.data(), static_cast<int>(named.size())), w);
}
inline std::vector<std::string> names_npz(const std::string &path, location w = location::here())
{
    const std::unique_ptr<char *, void (*)(void *)> names(detail::check((duet_names_npz)(path.c_str()), w),
                                                          std::free);
    std::vector<std::string> list;
    for (char **name = names.get(); name && *name; name++) list.emplace_back(*name);
    return list;
}

/* ---- printing: to a FILE or a stream ------------------------------------------------------------- */

#define DUET_HPP_PRINT(name, parameters, call)                                                               \
    inline void name(std::FILE *out, parameters location w = location::here()) { detail::check(call, w); }   \
    inline void name(std::ostream &stream, parameters location w = location::here())                         \
    {                                                                                                        \
        detail::check(detail::print_to(stream, [&](std::FILE *out) { return call; }), w);                    \
    }
#define DUET_HPP_LIST(...) __VA_ARGS__
namespace detail
{
inline duet_status explain(std::FILE *out, const matrix &m, const operand &e) noexcept
{
    expr made;
    const duet_expr x = e.peek(made);
    if (!m.empty() || duet_expr_status(x) != DUET_OK) return (duet_explain)(out, m.get(), x);
    duet_status s;
    const matrix to = like(x, e.where(), &s);
    return s == DUET_OK ? (duet_explain)(out, to.get(), x) : s;
}
} // namespace detail
inline duet_status explain_statements(std::FILE *out, std::initializer_list<assignment> list,
                                      location w) noexcept
{
    constexpr int most = 65; /* one more than allowed, for the error */
    duet_assignment a[most];
    expr formula[most];
    matrix made[most];
    int n = 0;
    for (const assignment &s : list) {
        if (n == most) break;
        duet_status failed; /* duet_explain_all returns it */
        const duet_expr e = s.value.peek(formula[n]);
        if (s.to->empty()) made[n] = detail::like(e, w, &failed);
        a[n] = { made[n].get() ? made[n].get() : s.to->get(), e };
        n++;
    }
    return (duet_explain_all)(out, a, n);
}
/* Elements, as operator<< prints them. */
DUET_HPP_PRINT(print, DUET_HPP_LIST(const matrix &m, ), (duet_print)(out, m.get()))
/* Texts, matrices, formulas and numbers. Each text starts a line, and the values that follow stand behind it:
 * print(stdout, "mean", mean(x), "x", x). The formulas are evaluated together. */
struct first_text {
    const char *text;
    location where;
    first_text(const char *t, location w = location::here()) noexcept : text(t), where(w) {}
};
namespace detail
{
inline duet_printed printed(const char *x, location) noexcept { return duet_printed(x); }
inline duet_printed printed(char *x, location) noexcept { return duet_printed(static_cast<const char *>(x)); }
inline duet_printed printed(const std::string &x, location) noexcept { return duet_printed(x.c_str()); }
inline duet_printed printed(const matrix &x, location) noexcept { return duet_printed(x.get()); }
template <class T> duet_printed printed(const T &x, location w) noexcept
{
    if constexpr (std::is_arithmetic_v<T> && std::is_constructible_v<duet_printed, T>) return duet_printed(x);
    else return duet_printed(operand(x, w).get());
}
template <class... T> duet_status print_items(std::FILE *out, const first_text &first, const T &...x) noexcept
{
    const duet_printed list[] = { duet_printed(first.text), printed(x, first.where)... };
    return duet_print_all_at(out, list, static_cast<int>(sizeof...(x)) + 1, site(first.where));
}
} // namespace detail
template <class... T> void print(std::FILE *out, const first_text &first, const T &...more)
{
    detail::check(detail::print_items(out, first, more...), first.where);
}
template <class... T> void print(std::ostream &stream, const first_text &first, const T &...more)
{
    detail::check(detail::print_to(stream,
                                   [&](std::FILE *out) { return detail::print_items(out, first, more...); }),
                  first.where);
}
/* A formula as a C expression. */
DUET_HPP_PRINT(print_expr, DUET_HPP_LIST(const expr &e, ), (duet_print_expr)(out, e.get()))
/* The plan of m = e, and the plan of set_all. They compute nothing. */
DUET_HPP_PRINT(explain, DUET_HPP_LIST(const matrix &m, const operand &e, ), detail::explain(out, m, e))
DUET_HPP_PRINT(explain_all, DUET_HPP_LIST(std::initializer_list<assignment> list, ),
               explain_statements(out, list, w))
/* The devices and the vendor libraries. */
DUET_HPP_PRINT(info, , ((duet_info)(out), DUET_OK))
/* Who uses the memory of the devices. */
DUET_HPP_PRINT(memory_report, , ((duet_memory_report)(out), DUET_OK))
#undef DUET_HPP_PRINT
#undef DUET_HPP_LIST
/* The live matrices, one line for each. They return the number of matrices. */
inline int64_t live(std::FILE *out = nullptr) noexcept { return duet_live(out); }
inline int64_t live(std::ostream &stream)
{
    int64_t n = 0;
    (void)detail::print_to(stream, [&](std::FILE *out) { return n = duet_live(out), DUET_OK; });
    return n;
}

/* ---- settings, statistics, the GPU ---------------------------------------------------------------- */

inline void set_threads(int threads, location w = location::here())
{
    detail::check((duet_set_threads)(threads), w);
}
inline void auto_replay(bool on, location w = location::here()) { detail::check((duet_auto_replay)(on), w); }
inline void arena_limit(std::size_t bytes, location w = location::here())
{
    detail::check((duet_arena_limit)(bytes), w);
}
inline duet_memory memory_of(duet_place place) noexcept { return duet_memory_of(place); }
inline void memory_limit(duet_place place, std::size_t bytes, location w = location::here())
{
    detail::check((duet_memory_limit)(place, bytes), w);
}
inline void load_limits(std::size_t bytes, int ratio = 0, location w = location::here())
{
    detail::check((duet_load_limits)(bytes, ratio), w);
}
inline void memory_trim() noexcept { duet_memory_trim(); }
inline duet_counts stats() noexcept { return duet_stats(); }
inline const char *version() noexcept { return duet_version(); }

/* The cudaStream_t of this thread's statements. */
inline void *stream(location w = location::here()) { return detail::check((duet_stream)(), w); }
inline void synchronize(location w = location::here()) { detail::check((duet_synchronize)(), w); }
/* Restarts every lost GPU and tests it with a kernel. */
inline void recover(location w = location::here()) { detail::check((duet_recover)(), w); }

/* ---- selections, factorisations ------------------------------------------------------------------- */

/* New matrices whose size depends on values, as duet_masked, duet_nonzero, duet_unique and duet_unique_axis. */
inline matrix masked(const operand &x, const operand &mask)
{
    const duet_expr e = x.get();
    return matrix(detail::check(duet_masked_at(e, mask.get(), x.site()), x.where()));
}
inline matrix nonzero(const operand &x)
{
    return matrix(detail::check(duet_nonzero_at(x.get(), x.site()), x.where()));
}
struct unique_result {
    matrix values, counts, inverse;
};
inline unique_result unique(const operand &x)
{
    duet_matrix *counts = nullptr, *inverse = nullptr;
    matrix values(detail::check(duet_unique_at(x.get(), &counts, &inverse, x.site()), x.where()));
    return { std::move(values), matrix(counts), matrix(inverse) };
}
inline unique_result unique(const operand &x, int axis)
{
    duet_matrix *counts = nullptr, *inverse = nullptr;
    duet_matrix *values = duet_unique_axis_at(x.get(), axis, &counts, &inverse, x.site());
    return { matrix(detail::check(values, x.where())), matrix(counts), matrix(inverse) };
}

/* Factorisations: auto [q, r] = duet::qr(a). The members have the names of the results in factor.def. */
namespace detail
{
struct factor_sizes {
    const matrix &a;
    location where;
    int64_t m, n, k;
    factor_sizes(const matrix &x, location w) noexcept
        : a(x), where(w), m(x.rank() > 1 ? x.size(x.rank() - 2) : 0),
          n(x.rank() > 1 ? x.size(x.rank() - 1) : 0), k(m < n ? m : n)
    {
    }
    /* The leading axes of a, then these: of an empty matrix if a has fewer than two axes. */
    matrix like(dtype type, int rank, int64_t rows, int64_t cols = 0) const
    {
        int64_t size[DUET_RANK_MAX];
        int axes = 0;
        for (; axes + 2 < a.rank(); axes++) size[axes] = a.size(axes);
        if (rank > 0) size[axes++] = rows;
        if (rank > 1) size[axes++] = cols;
        return matrix(check((duet_new_shape)(type, axes, size), where));
    }
    dtype part() const noexcept { return a.type() == c64 ? f32 : a.type() == c128 ? f64 : a.type(); }
};
} // namespace detail
#define LIKE_IT(...) like(a.type(), __VA_ARGS__),
#define OF_PART(...) like(part(), __VA_ARGS__),
#define INDICES(...) like(i64, __VA_ARGS__),
#define COMPLEX(...) like(part() == f32 ? c64 : c128, __VA_ARGS__),
#define DUET_FACTOR2(name, first, second, needs, shapes, ...)                                                \
    struct name##_result {                                                                                   \
        matrix first, second;                                                                                \
    };                                                                                                       \
    inline name##_result name(const matrix &x, location w = location::here())                                \
    {                                                                                                        \
        struct results : detail::factor_sizes {                                                              \
            name##_result r;                                                                                 \
            results(const matrix &y, location v) : factor_sizes(y, v), r{ shapes } {}                        \
        } f(x, w);                                                                                           \
        detail::check(duet_##name##_at(f.r.first.get(), f.r.second.get(), x.get(), detail::site(w)), w);     \
        return std::move(f.r);                                                                               \
    }
#define DUET_FACTOR3(name, first, second, third, needs, shapes, ...)                                         \
    struct name##_result {                                                                                   \
        matrix first, second, third;                                                                         \
    };                                                                                                       \
    inline name##_result name(const matrix &x, location w = location::here())                                \
    {                                                                                                        \
        struct results : detail::factor_sizes {                                                              \
            name##_result r;                                                                                 \
            results(const matrix &y, location v) : factor_sizes(y, v), r{ shapes } {}                        \
        } f(x, w);                                                                                           \
        detail::check(duet_##name##_at(f.r.first.get(), f.r.second.get(), f.r.third.get(), x.get(),          \
                                       detail::site(w)),                                                     \
                      w);                                                                                    \
        return std::move(f.r);                                                                               \
    }
#include <duet/factor.def>
#undef LIKE_IT
#undef OF_PART
#undef INDICES
#undef COMPLEX

/* ---- sparse matrices (duet/sparse.h) ---- */

/* What from_coo does with elements at the same place. */
inline constexpr duet_duplicates refuse_duplicates = DUET_DUPLICATES_REFUSE,
                                 sum_duplicates = DUET_DUPLICATES_SUM;

/* A sparse matrix, which frees itself. It is moved, and copied by clone(). */
class [[nodiscard]] sparse
{
    duet_sparse *s = nullptr;
    matrix v; /* belongs to s */

    static sparse made(duet_sparse *made, location w)
    {
        detail::check(made, w);
        if (made) duet_sparse_created_at(made, detail::site(w));
        return sparse(made);
    }

  public:
    sparse() noexcept {}
    explicit sparse(duet_sparse *made) noexcept
        : s(made), v(duet_sparse_values(made)) {} /* frees it in the end */
    sparse(sparse &&from) noexcept : s(from.s), v(std::move(from.v)) { from.s = nullptr; }
    sparse &operator=(sparse &&from) noexcept
    {
        std::swap(s, from.s);
        v.swap(from.v);
        return *this;
    }
    ~sparse()
    {
        (void)v.release();
        duet_sparse_free(&s);
    }

    /* The elements of m that are not 0. */
    explicit sparse(const matrix &m, location w = location::here())
        : sparse(made((duet_sparse_from_dense)(m.get()), w))
    {
    }
    static sparse from_coo(int64_t rows, int64_t columns, const matrix &row, const matrix &column,
                           const matrix &values, duet_duplicates duplicates = refuse_duplicates,
                           location w = location::here())
    {
        return made((duet_sparse_from_coo)(rows, columns, row.get(), column.get(), values.get(), duplicates),
                    w);
    }
    static sparse from_csr(int64_t rows, int64_t columns, const matrix &offsets, const matrix &column,
                           const matrix &values, location w = location::here())
    {
        return made((duet_sparse_from_csr)(rows, columns, offsets.get(), column.get(), values.get()), w);
    }
    static sparse load_market(const std::string &path, location w = location::here())
    {
        return made((duet_sparse_load_market)(path.c_str()), w);
    }
    static sparse read_market(std::FILE *in, location w = location::here())
    {
        return made((duet_sparse_read_market)(in), w);
    }
    void save_market(const std::string &path, location w = location::here()) const
    {
        detail::check((duet_sparse_save_market)(path.c_str(), s), w);
    }
    void write_market(std::FILE *out, location w = location::here()) const
    {
        detail::check((duet_sparse_write_market)(out, s), w);
    }

    duet_sparse *get() const noexcept { return s; }
    int64_t rows() const noexcept { return duet_sparse_rows(s); }
    int64_t columns() const noexcept { return duet_sparse_columns(s); }
    int64_t count() const noexcept { return duet_sparse_count(s); }
    dtype type() const noexcept { return duet_sparse_type(s); }
    const matrix &values() const noexcept { return v; } /* for formulas and gradients */
    void set_values(const operand &e) { detail::check(duet_set_at(v.get(), e.get(), e.site()), e.where()); }
    const duet_matrix *pattern() const noexcept { return duet_sparse_pattern(s); }

    /* The row, or the offsets of rows, then the column and the value of each element. */
    struct lists {
        matrix first, column, values;
    };
    lists to_coo(location w = location::here()) const
    {
        duet_matrix *a = nullptr, *b = nullptr, *c = nullptr;
        detail::check((duet_sparse_to_coo)(s, &a, &b, &c), w);
        return { matrix(a), matrix(b), matrix(c) };
    }
    lists to_csr(location w = location::here()) const
    {
        duet_matrix *a = nullptr, *b = nullptr, *c = nullptr;
        detail::check((duet_sparse_to_csr)(s, &a, &b, &c), w);
        return { matrix(a), matrix(b), matrix(c) };
    }

    sparse clone(location w = location::here()) const { return made((duet_sparse_copy)(s), w); }
    sparse with_values(const operand &e) const
    {
        return sparse(detail::check(duet_sparse_with_values_at(s, e.get(), e.site()), e.where()));
    }
    sparse transposed(location w = location::here()) const { return made((duet_sparse_transposed)(s), w); }
    sparse slice(int64_t from, int64_t to, location w = location::here()) const
    {
        return made((duet_sparse_slice)(s, from, to), w);
    }
    expr to_dense(location w = location::here()) const noexcept
    {
        return expr(duet_sparse_to_dense_at(s, detail::site(w)));
    }
    friend sparse add(const sparse &a, const sparse &b, location w = location::here())
    {
        return made((duet_sparse_add)(a.s, b.s), w);
    }
    friend sparse multiply(const sparse &a, const sparse &b, location w = location::here())
    {
        return made((duet_sparse_multiply)(a.s, b.s), w);
    }
    friend sparse product(const sparse &a, const sparse &b, location w = location::here())
    {
        return made((duet_sparse_product)(a.s, b.s), w);
    }
};

inline expr matmul(const sparse &s, const operand &x) noexcept
{
    return expr(duet_sparse_matmul_at(s.get(), x.get(), x.site()));
}
inline expr transposed_matmul(const sparse &s, const operand &x) noexcept
{
    return expr(duet_sparse_transposed_matmul_at(s.get(), x.get(), x.site()));
}
inline expr adjoint_matmul(const sparse &s, const operand &x) noexcept
{
    return expr(duet_sparse_adjoint_matmul_at(s.get(), x.get(), x.site()));
}
inline expr sddmm(const sparse &s, const operand &a, const operand &b) noexcept
{
    const duet_expr first = a.get();
    return expr(duet_sparse_sddmm_at(s.get(), first, b.get(), a.site()));
}
inline expr take(const sparse &s, const operand &x) noexcept
{
    return expr(duet_sparse_take_at(s.get(), x.get(), x.site()));
}
inline expr sum(const sparse &s, int axis, location w = location::here()) noexcept
{
    return expr(duet_sparse_sum_at(s.get(), axis, detail::site(w)));
}
inline expr solve(const sparse &s, const operand &b) noexcept
{
    return expr(duet_sparse_solve_at(s.get(), b.get(), b.site()));
}
inline expr solve_triangular(const sparse &s, const operand &b, const triangle_options &o = {}) noexcept
{
    return expr(
        duet_sparse_solve_triangular_at(s.get(), b.get(), detail::options<duet_triangle>(o), b.site()));
}

#ifndef __cpp_exceptions
} // namespace without_exceptions
#endif
} // namespace duet
#endif
