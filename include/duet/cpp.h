/* cpp.h - for C++: converts numbers and matrices to formulas, and makes templates of the functions that
 * take lists of sizes, axes or matrices. Included by duet.h. */
#ifndef DUET_CPP_H
#define DUET_CPP_H

#include <type_traits>

/* Sets the math mode of this thread's statements for as long as the object lives. */
class duet_math_block
{
    duet_scope scope;
    duet_math_block(const duet_math_block &);
    duet_math_block &operator=(const duet_math_block &);

  public:
    explicit duet_math_block(duet_math_mode math) : scope(duet_math_open(math)) {}
    ~duet_math_block() { duet_math_close(&scope); }
};
/* Limits the CPU threads of this thread's statements for as long as the object lives. */
class duet_threads_block
{
    duet_scope scope;
    duet_threads_block(const duet_threads_block &);
    duet_threads_block &operator=(const duet_threads_block &);

  public:
    explicit duet_threads_block(int threads) : scope(duet_threads_open(threads)) {}
    ~duet_threads_block() { duet_threads_close(&scope); }
};
inline duet_expr::duet_expr(const duet_matrix *m) { *this = duet_of_matrix(m); }
inline duet_expr::duet_expr(double x) { *this = duet_of_number(x); }
inline duet_expr::duet_expr(float x) { *this = duet_of_number(x); }
inline duet_expr::duet_expr(long double x) { *this = duet_of_number((double)x); }
inline duet_expr::duet_expr(int x) { *this = duet_of_integer(x); }
inline duet_expr::duet_expr(long x) { *this = duet_of_integer(x); }
inline duet_expr::duet_expr(long long x) { *this = duet_of_integer(x); }
inline duet_expr::duet_expr(unsigned x) { *this = duet_of_unsigned(x); }
inline duet_expr::duet_expr(unsigned long x) { *this = duet_of_unsigned(x); }
inline duet_expr::duet_expr(unsigned long long x) { *this = duet_of_unsigned(x); }

/* The templates below take any number of sizes, axes, operands or index entries. A call with a count and a
 * pointer to a list, as in C, must not match them. DUET_EACH: the condition holds for each type of a list. */
template <bool...> struct duet_flags;
#define DUET_EACH(...)                                                                                       \
    typename std::enable_if<                                                                                 \
        std::is_same<duet_flags<true, __VA_ARGS__...>, duet_flags<__VA_ARGS__..., true>>::value>::type
#define DUET_INTEGERS                                                                                        \
    template <class... N, class = DUET_EACH((std::is_integral<N>::value || std::is_enum<N>::value))>
#define DUET_FORMULAS template <class... E, class = DUET_EACH((std::is_convertible<E, duet_expr>::value))>
#define DUET_ENTRIES                                                                                         \
    template <class... I, class = DUET_EACH((std::is_convertible<I, duet_index_entry>::value))>

DUET_INTEGERS inline DUET_MUST duet_matrix *duet_new(duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_new_shape(type, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_wrap(void *host, duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_wrap_shape(host, type, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_wrap_columns(void *host, duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_wrap_columns_shape(host, type, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_wrap_const(const void *host, duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_wrap_const_shape(host, type, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_wrap_device(void *device, duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_wrap_device_shape(device, type, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_new_split(duet_group *g, duet_dtype type, int axis, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_new_split_shape(g, type, axis, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_new_replicated(duet_group *g, duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_new_replicated_shape(g, type, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_zeros(duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_zeros_shape(type, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_ones(duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_ones_shape(type, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_full(duet_dtype type, duet_expr value, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_full_shape(type, value, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_from_array(const void *array, duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_from_array_shape(array, type, (int)sizeof...(n), size + 1);
}
/* Formulas: duet_reshape(x, 2, -1), duet_permute(x, 1, 0), duet_index(x, DUET_AT(2), DUET_RANGE(0, 5)) */
DUET_INTEGERS inline DUET_MUST duet_expr duet_reshape(duet_expr x, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_reshape(x, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_expr duet_broadcast(duet_expr x, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_broadcast(x, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_expr duet_permute(duet_expr x, N... n)
{
    const int axis[] = { 0, (int)n... };
    return duet_permute(x, (int)sizeof...(n), axis + 1);
}
DUET_ENTRIES inline DUET_MUST duet_expr duet_index(duet_expr x, duet_index_entry first, I... i)
{
    const duet_index_entry index[] = { first, i... };
    return duet_index(x, (int)sizeof...(i) + 1, index);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_reshaped(duet_matrix *m, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_reshaped_shape(m, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_status duet_resize(duet_matrix *m, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_resize_shape(m, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_broadcast_to(duet_matrix *m, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_broadcast_to_shape(m, (int)sizeof...(n), size + 1);
}
DUET_INTEGERS inline DUET_MUST duet_matrix *duet_permuted(duet_matrix *m, N... n)
{
    const int axis[] = { 0, (int)n... };
    return duet_permuted_axes(m, (int)sizeof...(n), axis + 1);
}
DUET_ENTRIES inline DUET_MUST duet_matrix *duet_indexed(duet_matrix *m, I... i)
{
    const duet_index_entry index[] = { DUET_REST, i... };
    return duet_indexed_by(m, (int)sizeof...(i), index + 1);
}
/* Operands joined along an axis: duet_concat(0, a, b), duet_stack(0, a, b); duet_global_norm(a, b); and
 * duet_tile(x, 2, 3) */
DUET_FORMULAS inline DUET_MUST duet_expr duet_concat(int axis, duet_expr first, E... more)
{
    const duet_expr x[] = { first, more... };
    return duet_concat(axis, (int)sizeof...(more) + 1, x);
}
DUET_FORMULAS inline DUET_MUST duet_expr duet_stack(int axis, duet_expr first, E... more)
{
    const duet_expr x[] = { first, more... };
    return duet_stack(axis, (int)sizeof...(more) + 1, x);
}
DUET_FORMULAS inline DUET_MUST duet_expr duet_global_norm(duet_expr first, E... more)
{
    const duet_expr x[] = { first, more... };
    return duet_global_norm((int)sizeof...(more) + 1, x);
}
DUET_INTEGERS inline DUET_MUST duet_expr duet_tile(duet_expr x, N... n)
{
    const int64_t times[] = { 0, (int64_t)n... };
    return duet_tile(x, (int)sizeof...(n), times + 1);
}
/* Reductions along several axes: duet_sum_axes(x, 0, 2) */
#define DUET_AXES_OF_1(name)                                                                                 \
    DUET_INTEGERS inline DUET_MUST duet_expr name(duet_expr x, N... n)                                       \
    {                                                                                                        \
        const int axis[] = { 0, (int)n... };                                                                 \
        return name(x, (int)sizeof...(n), axis + 1);                                                         \
    }
#define DUET_AXES_OF_2(name)                                                                                 \
    DUET_INTEGERS inline DUET_MUST duet_expr name(duet_expr x, duet_expr y, N... n)                          \
    {                                                                                                        \
        const int axis[] = { 0, (int)n... };                                                                 \
        return name(x, y, (int)sizeof...(n), axis + 1);                                                      \
    }
/* The same without a name of its own: duet_sum(x, 0, 2) */
#define DUET_OVER_OF_1(name)                                                                                 \
    DUET_INTEGERS inline DUET_MUST duet_expr name(duet_expr x, int axis, N... n)                             \
    {                                                                                                        \
        return name##_axes(x, axis, n...);                                                                   \
    }
#define DUET_OVER_OF_2(name)                                                                                 \
    DUET_INTEGERS inline DUET_MUST duet_expr name(duet_expr x, duet_expr y, int axis, N... n)                \
    {                                                                                                        \
        return name##_axes(x, y, axis, n...);                                                                \
    }
#define DUET_FOLD1(name, ...)                                                                                \
    DUET_AXES_OF_1(duet_##name##_axes) DUET_AXES_OF_1(duet_##name##_axes_keep) DUET_OVER_OF_1(duet_##name)
#define DUET_FOLD2(name, ...)                                                                                \
    DUET_AXES_OF_2(duet_##name##_axes) DUET_AXES_OF_2(duet_##name##_axes_keep) DUET_OVER_OF_2(duet_##name)
#define DUET_MOMENT1 DUET_FOLD1
#define DUET_PLACE1(name, ...)                                                                               \
    inline DUET_MUST duet_expr duet_##name(duet_expr x, int axis) { return duet_##name##_axis(x, axis); }
#define DUET_COMPOSED_FOLD1 DUET_FOLD1
#include <duet/composed.def>
#include <duet/ops.def>
DUET_AXES_OF_1(duet_median_axes)
DUET_AXES_OF_1(duet_median_axes_keep)
DUET_OVER_OF_1(duet_median)
/* Reductions with a number: duet_quantile(x, 0.25, 0, 2) */
#define DUET_FOLD1N(name)                                                                                    \
    DUET_INTEGERS inline DUET_MUST duet_expr name##_axes(duet_expr x, double s, N... n)                      \
    {                                                                                                        \
        const int axis[] = { 0, (int)n... };                                                                 \
        return name##_axes(x, s, (int)sizeof...(n), axis + 1);                                               \
    }                                                                                                        \
    DUET_INTEGERS inline DUET_MUST duet_expr name##_axes_keep(duet_expr x, double s, N... n)                 \
    {                                                                                                        \
        const int axis[] = { 0, (int)n... };                                                                 \
        return name##_axes_keep(x, s, (int)sizeof...(n), axis + 1);                                          \
    }                                                                                                        \
    DUET_INTEGERS inline DUET_MUST duet_expr name(duet_expr x, double s, int axis, N... n)                   \
    {                                                                                                        \
        return name##_axes(x, s, axis, n...);                                                                \
    }
DUET_FOLD1N(duet_var_ddof)
DUET_FOLD1N(duet_std_ddof)
DUET_FOLD1N(duet_quantile)
DUET_FOLD1N(duet_percentile)
DUET_FOLD1N(duet_vector_norm)
#undef DUET_FOLD1N
inline DUET_MUST duet_expr duet_softmax(duet_expr x, int axis) { return duet_softmax_axis(x, axis); }
inline DUET_MUST duet_expr duet_log_softmax(duet_expr x, int axis) { return duet_log_softmax_axis(x, axis); }
inline DUET_MUST duet_expr duet_one_hot(duet_expr x, int n, duet_dtype type, int axis)
{
    return duet_one_hot_axis(x, n, type, axis);
}
DUET_INTEGERS inline DUET_MUST duet_expr duet_layer_norm(duet_expr x, duet_expr scale, duet_expr shift,
                                                         double r, int a, N... n)
{
    const int axis[] = { a, (int)n... };
    return duet_layer_norm_axes(x, scale, shift, r, 1 + (int)sizeof...(n), axis);
}
DUET_INTEGERS inline DUET_MUST duet_expr duet_rms_norm(duet_expr x, duet_expr scale, double r, int a, N... n)
{
    const int axis[] = { a, (int)n... };
    return duet_rms_norm_axes(x, scale, r, 1 + (int)sizeof...(n), axis);
}
inline DUET_MUST duet_expr duet_cross(duet_expr x, duet_expr y, int axis)
{
    return duet_cross_axis(x, y, axis);
}
DUET_INTEGERS inline DUET_MUST duet_expr duet_meshgrid(duet_expr x, int axis, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_meshgrid(x, axis, (int)sizeof...(n), size + 1);
}
#undef DUET_AXES_OF_1
#undef DUET_AXES_OF_2
#undef DUET_OVER_OF_1
#undef DUET_OVER_OF_2
#undef DUET_INTEGERS
#undef DUET_FORMULAS
#undef DUET_ENTRIES
#undef DUET_EACH
/* Several matrices: duet_free(&x, &y) */
template <class... M> inline void duet_free(duet_matrix **first, duet_matrix **second, M... more)
{
    duet_free(first);
    duet_free(second, more...);
}
/* Several items: duet_print(stdout, "x", x, "sum", duet_sum(x)) */
#define DUET_PRINTED_AS(C, dtype, member, T)                                                                 \
    inline duet_printed::duet_printed(C x) : kind(DUET_PRINTED_NUMBER), type(dtype) { member = (T)x; }
DUET_PRINTED_AS(double, DUET_F64, f64, double)
DUET_PRINTED_AS(float, DUET_F32, f32, float)
DUET_PRINTED_AS(long double, DUET_F64, f64, double)
DUET_PRINTED_AS(int, DUET_I64, i64, int64_t)
DUET_PRINTED_AS(long, DUET_I64, i64, int64_t)
DUET_PRINTED_AS(long long, DUET_I64, i64, int64_t)
DUET_PRINTED_AS(unsigned, DUET_U64, u64, uint64_t)
DUET_PRINTED_AS(unsigned long, DUET_U64, u64, uint64_t)
DUET_PRINTED_AS(unsigned long long, DUET_U64, u64, uint64_t)
#undef DUET_PRINTED_AS
inline duet_printed::duet_printed(const char *x) : kind(DUET_PRINTED_TEXT), type(DUET_F64) { text = x; }
inline duet_printed::duet_printed(const duet_matrix *x) : kind(DUET_PRINTED_MATRIX), type(DUET_F64) { m = x; }
inline duet_printed::duet_printed(duet_expr x) : kind(DUET_PRINTED_FORMULA), type(DUET_F64) { e = x; }
template <class... T> inline duet_status duet_print(FILE *out, const duet_printed &first, const T &...more)
{
    const duet_printed list[] = { first, more... };
    return duet_print_all(out, list, (int)sizeof...(more) + 1);
}
/* Several items: duet_items({ { duet_sum(x), DUET_F64, &sum }, { duet_max(x), DUET_F64, &most } }) */
template <int N> inline DUET_MUST duet_status duet_items(const duet_item_entry (&list)[N])
{
    return duet_items(list, N);
}
/* Several statements: duet_set_all({ { m, duet_mean(x) }, { d, duet_sub(x, y) } }) */
template <int N> inline DUET_MUST duet_status duet_set_all(const duet_assignment (&a)[N])
{
    return duet_set_all(a, N);
}

#endif
