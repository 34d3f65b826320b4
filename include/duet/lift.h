/* lift.h - for C: macros over the functions of duet.h. They convert operands (matrices, formulas or
 * numbers) to formulas, and pass the source line for error texts. Included by duet.h. Parentheses call
 * the function instead of the macro: (duet_add)(x, y). */
#ifndef DUET_LIFT_H
#define DUET_LIFT_H

static inline duet_expr duet_as_it_is(duet_expr e) { return e; } /* duet_of_expr, inline */

/* Converts a complex number of C. Its memory layout is that of an array of two numbers. */
static inline duet_expr duet_of_complex(double _Complex z)
{
    const union {
        double _Complex whole;
        double part[2];
    } u = { z };
    return duet_complex(duet_of_number(u.part[0]), duet_of_number(u.part[1]));
}

/* The entry for real numbers. With GNU C it also covers _Float16, _Float32 and the like, where they
 * are types of their own. */
// clang-format off
#ifdef __GNUC__
/* Not declared as a function: a pointer to numbers as an operand is a compile-time error. */
extern const struct duet_error_operand {
    int operand;
} duet_operand_must_be_a_matrix_a_formula_or_a_number;
#define DUET_REAL_OR(x, real, integer) __builtin_choose_expr(__builtin_classify_type(x) == 8, real, \
    __builtin_choose_expr(__builtin_classify_type(x) == 5, duet_operand_must_be_a_matrix_a_formula_or_a_number, integer))
#define DUET_LIFT_REAL(x) default: DUET_REAL_OR(x, duet_of_number, duet_of_integer)
#else
#define DUET_REAL_OR(x, real, integer) integer
#define DUET_LIFT_REAL(x) float: duet_of_number, double: duet_of_number, long double: duet_of_number, default: duet_of_integer
#endif
// clang-format on

/* Converts x to a formula. The expansion contains x only once. With two copies, the text would double
 * at each level of nested operators. */
#define DUET_LIFT(x)                                                                                         \
    _Generic((x),                                                                                                                \
        duet_expr: duet_as_it_is,                                                                                                \
        duet_matrix *: duet_of_matrix,                                                                                           \
        const duet_matrix *: duet_of_matrix,                                                                                     \
        float _Complex: duet_of_complex,                                                                                         \
        double _Complex: duet_of_complex,                                                                                        \
        long double _Complex: duet_of_complex,                                                                                   \
        unsigned long: duet_of_unsigned,                                                                                         \
        unsigned long long: duet_of_unsigned,                                                                                    \
        DUET_LIFT_REAL(x))(x)
#ifdef __GNUC__
#define DUET(x)      DUET_1(x, __COUNTER__)
#define DUET_1(x, n) DUET_2(x, n)
#define DUET_2(x, n)                                                                                         \
    __extension__({                                                                                          \
        __auto_type duet_##n = (x);                                                                          \
        DUET_LIFT(duet_##n);                                                                                 \
    })
#else
#define DUET(x) DUET_LIFT(x)
#endif

/* The element type that a pointer to a C type points to; DUET_DTYPE_COUNT: none. */
#define DUET_TYPE_OF(p)                                                                                      \
    _Generic((p),                                                                                            \
        float *: DUET_F32, const float *: DUET_F32, double *: DUET_F64, const double *: DUET_F64,            \
        signed char *: DUET_I8, const signed char *: DUET_I8,                                                \
        unsigned char *: DUET_U8, const unsigned char *: DUET_U8,                                            \
        char *: DUET_CHAR, const char *: DUET_CHAR,                                                          \
        short *: DUET_I16, const short *: DUET_I16,                                                          \
        unsigned short *: DUET_U16, const unsigned short *: DUET_U16,                                        \
        int *: DUET_I32, const int *: DUET_I32, unsigned *: DUET_U32, const unsigned *: DUET_U32,            \
        long *: DUET_LONG, const long *: DUET_LONG,                                                          \
        unsigned long *: DUET_ULONG, const unsigned long *: DUET_ULONG,                                      \
        long long *: DUET_I64, const long long *: DUET_I64,                                                  \
        unsigned long long *: DUET_U64, const unsigned long long *: DUET_U64,                                \
        _Bool *: DUET_BOOL, const _Bool *: DUET_BOOL,                                                        \
        float _Complex *: DUET_C64, const float _Complex *: DUET_C64,                                        \
        double _Complex *: DUET_C128, const double _Complex *: DUET_C128,                                    \
        default: DUET_DTYPE_COUNT)
#define DUET_CHAR  ((char)-1 < 0 ? DUET_I8 : DUET_U8)
#define DUET_LONG  (sizeof(long) == 8 ? DUET_I64 : DUET_I32)
#define DUET_ULONG (sizeof(long) == 8 ? DUET_U64 : DUET_U32)

/* Returns p, a pointer to elements of the type that is the first of the other arguments. If that type
 * is a constant and p points to another C type, compilation fails. A pointer to void or char, and a pointer
 * to a type that is none of Duet's, are accepted. uint8_t is also the type of bool elements, and uint16_t
 * that of f16 and bf16; complex elements are also arrays of their parts. */
#if defined __GNUC__ && (!defined __clang__ || __clang_major__ >= 14)
__attribute__((error("the pointer points to another type than the elements have"))) void
duet_pointer_has_another_type(void);
#define DUET_FIRST(...)          DUET_FIRST_1(__VA_ARGS__, 0)
#define DUET_FIRST_1(first, ...) (first)
#define DUET_SAME_ELEMENTS(pointed, type)                                                                    \
    ((pointed) == DUET_DTYPE_COUNT || (pointed) == (type) ||                                                 \
     ((pointed) == DUET_U8 && (type) == DUET_BOOL) ||                                                        \
     ((pointed) == DUET_U16 && ((type) == DUET_F16 || (type) == DUET_BF16)) ||                               \
     ((pointed) == DUET_F32 && (type) == DUET_C64) || ((pointed) == DUET_F64 && (type) == DUET_C128))
#define DUET_ELEMENTS(p, ...)                                                                                \
    (__builtin_constant_p(DUET_FIRST(__VA_ARGS__)) && !DUET_IS_BYTES(p) &&                                   \
             !DUET_SAME_ELEMENTS(DUET_TYPE_OF(p), DUET_FIRST(__VA_ARGS__))                                   \
         ? duet_pointer_has_another_type()                                                                   \
         : (void)0,                                                                                          \
     (p))
#define DUET_IS_BYTES(p) _Generic((p), char * : 1, const char * : 1, default : 0)
#else
#define DUET_ELEMENTS(p, ...) (p)
#endif

#define DUET_HERE    __FILE__ ":" DUET_STR(__LINE__)
#define DUET_STR(x)  DUET_STR_(x)
#define DUET_STR_(x) #x

/* Lists of sizes, axes and index entries, as a count and an array. Some calls have
 * another argument before the sizes, as in duet_new(type, sizes...). That argument is then the first
 * element of the array. */
#define DUET_INTEGERS(...)                                                                                   \
    (const int64_t[]) { __VA_ARGS__ }
#define DUET_COUNT_OF(...) (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))
#define DUET_SIZES(...)    DUET_COUNT_OF(__VA_ARGS__), DUET_INTEGERS(__VA_ARGS__)
#define DUET_AXES(...)                                                                                       \
    (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), (const int[]) { __VA_ARGS__ }
#define DUET_ENTRIES(...)                                                                                    \
    (int)(sizeof((duet_index_entry[]){ __VA_ARGS__ }) / sizeof(duet_index_entry)),                           \
        (const duet_index_entry[])                                                                           \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
/* A type and sizes as one list: the arguments of a macro must be evaluated once. */
#define DUET_TYPE_FIRST(name)                                                                                \
    static inline DUET_MUST duet_matrix *name##_list(int count, const int64_t *list)                         \
    {                                                                                                        \
        return (name##_shape)((duet_dtype)list[0], count - 1, list + 1);                                     \
    }
#define DUET_TYPE_SECOND(name, pointer)                                                                      \
    static inline DUET_MUST duet_matrix *name##_list(pointer p, int count, const int64_t *list)              \
    {                                                                                                        \
        return (name##_shape)(p, (duet_dtype)list[0], count - 1, list + 1);                                  \
    }
DUET_TYPE_FIRST(duet_new)
DUET_TYPE_FIRST(duet_zeros)
DUET_TYPE_FIRST(duet_ones)
DUET_TYPE_SECOND(duet_wrap, void *)
DUET_TYPE_SECOND(duet_wrap_columns, void *)
DUET_TYPE_SECOND(duet_wrap_const, const void *)
DUET_TYPE_SECOND(duet_wrap_device, void *)
DUET_TYPE_SECOND(duet_from_array, const void *)
/* The list has the type, the axis if there is one, and the sizes. */
static inline DUET_MUST duet_matrix *duet_new_split_list(duet_group *g, int count, const int64_t *list)
{
    return (duet_new_split_shape)(g, (duet_dtype)list[0], (int)list[1], count - 2, list + 2);
}
static inline DUET_MUST duet_matrix *duet_new_replicated_list(duet_group *g, int count, const int64_t *list)
{
    return (duet_new_replicated_shape)(g, (duet_dtype)list[0], count - 1, list + 1);
}
#undef DUET_TYPE_FIRST
#undef DUET_TYPE_SECOND

#define duet_new(...)               DUET_MATRIX_HERE(duet_new_list, DUET_SIZES(__VA_ARGS__))
#define duet_zeros(...)             DUET_MATRIX_HERE(duet_zeros_list, DUET_SIZES(__VA_ARGS__))
#define duet_ones(...)              DUET_MATRIX_HERE(duet_ones_list, DUET_SIZES(__VA_ARGS__))
#define duet_new_split(g, ...)      DUET_MATRIX_HERE(duet_new_split_list, g, DUET_SIZES(__VA_ARGS__))
#define duet_new_replicated(g, ...) DUET_MATRIX_HERE(duet_new_replicated_list, g, DUET_SIZES(__VA_ARGS__))
#define duet_full(type, value, ...)                                                                          \
    DUET_MATRIX_HERE(duet_full_shape, type, DUET(value), DUET_SIZES(__VA_ARGS__))
#define duet_wrap(host, ...)                                                                                 \
    DUET_MATRIX_HERE(duet_wrap_list, DUET_ELEMENTS(host, __VA_ARGS__), DUET_SIZES(__VA_ARGS__))
#define duet_wrap_columns(host, ...)                                                                         \
    DUET_MATRIX_HERE(duet_wrap_columns_list, DUET_ELEMENTS(host, __VA_ARGS__), DUET_SIZES(__VA_ARGS__))
#define duet_wrap_const(host, ...)                                                                           \
    DUET_MATRIX_HERE(duet_wrap_const_list, DUET_ELEMENTS(host, __VA_ARGS__), DUET_SIZES(__VA_ARGS__))
#define duet_wrap_device(device, ...)                                                                        \
    DUET_MATRIX_HERE(duet_wrap_device_list, DUET_ELEMENTS(device, __VA_ARGS__), DUET_SIZES(__VA_ARGS__))
#define duet_from_array(array, ...)                                                                          \
    DUET_MATRIX_HERE(duet_from_array_list, DUET_ELEMENTS(array, __VA_ARGS__), DUET_SIZES(__VA_ARGS__))
#define duet_reshaped(m, ...)     DUET_MATRIX_HERE(duet_reshaped_shape, m, DUET_SIZES(__VA_ARGS__))
#define duet_resize(m, ...)       DUET_STATUS_HERE(duet_resize_shape, m, DUET_SIZES(__VA_ARGS__))
#define duet_broadcast_to(m, ...) DUET_MATRIX_HERE(duet_broadcast_to_shape, m, DUET_SIZES(__VA_ARGS__))
#define duet_permuted(m, ...)     DUET_MATRIX_HERE(duet_permuted_axes, m, DUET_AXES(__VA_ARGS__))
#define duet_indexed(m, ...)      DUET_MATRIX_HERE(duet_indexed_by, m, DUET_ENTRIES(__VA_ARGS__))

/* duet_free(&x, &y, ...) */
static inline void duet_free_each(int count, duet_matrix **const *m)
{
    for (int i = 0; i < count; i++) (duet_free)(m[i]);
}
#define duet_free(...)                                                                                       \
    duet_free_each((int)(sizeof((duet_matrix **[]){ __VA_ARGS__ }) / sizeof(duet_matrix **)),                \
                   (duet_matrix * *const[]){ __VA_ARGS__ })
#ifdef __GNUC__
#define DUET_LOCAL __attribute__((cleanup(duet_free)))
#endif

#define duet_eval(e) duet_eval_at(DUET(e), DUET_HERE)

/* A block of statements. `open` returns a `type` whose member `on` is 1. The end of the block, or what leaves
 * it, calls `close`. */
#define DUET_BLOCK(type, open, close, argument)      DUET_BLOCK_1(type, open, close, argument, __COUNTER__)
#define DUET_BLOCK_1(type, open, close, argument, n) DUET_BLOCK_2(type, open, close, argument, n)
#define DUET_BLOCK_2(type, open, close, argument, n)                                                         \
    for (__attribute__((cleanup(close))) type duet_block_##n = open(argument); duet_block_##n.on;            \
         duet_block_##n.on = 0)

#define DUET_ON(place)        DUET_BLOCK(duet_scope, duet_scope_open, duet_scope_close, place)
#define DUET_MATH(mode)       DUET_BLOCK(duet_scope, duet_math_open, duet_math_close, mode)
#define DUET_TRANSFERS(mode)  DUET_BLOCK(duet_scope, duet_transfers_open, duet_transfers_close, mode)
#define DUET_FORBID_TRANSFERS DUET_TRANSFERS(DUET_TRANSFERS_FORBIDDEN)
#define DUET_THREADS(threads) DUET_BLOCK(duet_scope, duet_threads_open, duet_threads_close, threads)
#define DUET_EXPLAIN(out)     DUET_BLOCK(duet_explaining, duet_explain_open, duet_explain_close, out)
#define DUET_TIMED(seconds)   DUET_BLOCK(duet_timing, duet_timing_open, duet_timing_close, seconds)

#define duet_set(m, e)            duet_set_at(m, DUET(e), DUET_HERE)
#define duet_set_on(place, m, e)  duet_set_on_at(place, m, DUET(e), DUET_HERE)
#define duet_set_math(math, m, e) duet_set_math_at(math, m, DUET(e), DUET_HERE)
#define duet_set_all(...)                                                                                    \
    duet_set_all_at((const duet_assignment[]){ __VA_ARGS__ },                                                \
                    (int)(sizeof((duet_assignment[]){ __VA_ARGS__ }) / sizeof(duet_assignment)), DUET_HERE)
#define duet_iadd(m, e) duet_iadd_at(m, DUET(e), DUET_HERE)
#define duet_isub(m, e) duet_isub_at(m, DUET(e), DUET_HERE)
#define duet_imul(m, e) duet_imul_at(m, DUET(e), DUET_HERE)
#define duet_idiv(m, e) duet_idiv_at(m, DUET(e), DUET_HERE)
#define duet_hold(e)    duet_hold_at(DUET(e), DUET_HERE)
#define duet_drop(e)    duet_drop_at(e, DUET_HERE)

#define duet_random_uniform(m, seed, low, high) duet_random_uniform_at(m, seed, low, high, DUET_HERE)
#define duet_random_normal(m, seed, mean, deviation)                                                         \
    duet_random_normal_at(m, seed, mean, deviation, DUET_HERE)
#define duet_random_bernoulli(m, seed, p)        duet_random_bernoulli_at(m, seed, p, DUET_HERE)
#define duet_random_integers(m, seed, low, high) duet_random_integers_at(m, seed, low, high, DUET_HERE)
#define duet_random_permutation(m, seed)         duet_random_permutation_at(m, seed, DUET_HERE)
#define duet_random_sobol(m, seed, first)        duet_random_sobol_at(m, seed, first, DUET_HERE)
#define duet_random_truncated_normal(m, seed, mean, deviation, low, high)                                    \
    duet_random_truncated_normal_at(m, seed, mean, deviation, low, high, DUET_HERE)

#define duet_noise_uniform(to, x, seed)     duet_noise_uniform_at(to, DUET(x), seed, DUET_HERE)
#define duet_noise_normal(to, x, seed)      duet_noise_normal_at(to, DUET(x), seed, DUET_HERE)
#define duet_noise_logistic(to, x, seed)    duet_noise_logistic_at(to, DUET(x), seed, DUET_HERE)
#define duet_noise_ranged(to, x, seed, top) duet_noise_ranged_at(to, DUET(x), seed, top, DUET_HERE)
#define duet_noise_bernoulli(to, x, seed)   duet_noise_bernoulli_at(to, DUET(x), seed, DUET_HERE)
#define duet_shuffle(to, from, axis, seed)  duet_shuffle_at(to, from, axis, seed, DUET_HERE)
#define duet_sequence(m, start, by)         duet_sequence_at(m, start, by, DUET_HERE)

/* DUET_EACH(f, x, y) is f(x), f(y), and DUET_NUMBER_OF(x, y) is 2. There are at most 16 arguments; from 17
 * to 32 the compiler's message says so. */
#define DUET_EACH(f, ...)                                                                                    \
    DUET_THIRTY_SECOND(__VA_ARGS__, DUET_EACH_N, DUET_EACH_N, DUET_EACH_N, DUET_EACH_N, DUET_EACH_N,         \
                       DUET_EACH_N, DUET_EACH_N, DUET_EACH_N, DUET_EACH_N, DUET_EACH_N, DUET_EACH_N,         \
                       DUET_EACH_N, DUET_EACH_N, DUET_EACH_N, DUET_EACH_N, DUET_EACH_N, DUET_EACH_16,        \
                       DUET_EACH_15, DUET_EACH_14, DUET_EACH_13, DUET_EACH_12, DUET_EACH_11, DUET_EACH_10,   \
                       DUET_EACH_9, DUET_EACH_8, DUET_EACH_7, DUET_EACH_6, DUET_EACH_5, DUET_EACH_4,         \
                       DUET_EACH_3, DUET_EACH_2, DUET_EACH_1, 0)                                             \
    (f, __VA_ARGS__)
#define DUET_NUMBER_OF(...)                                                                                  \
    DUET_SIXTEENTH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define DUET_SIXTEENTH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, ...) q
#define DUET_THIRTY_SECOND(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17,   \
                           a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, which, ...) \
    which
#define DUET_EACH_N(f, ...)                                                                                  \
    {                                                                                                        \
        sizeof(struct {                                                                                      \
            int one;                                                                                         \
            _Static_assert(0, "a list has at most 16 items");                                                \
        })                                                                                                   \
    }

#define DUET_EACH_1(f, x)       f(x)
#define DUET_EACH_2(f, x, ...)  f(x), DUET_EACH_1(f, __VA_ARGS__)
#define DUET_EACH_3(f, x, ...)  f(x), DUET_EACH_2(f, __VA_ARGS__)
#define DUET_EACH_4(f, x, ...)  f(x), DUET_EACH_3(f, __VA_ARGS__)
#define DUET_EACH_5(f, x, ...)  f(x), DUET_EACH_4(f, __VA_ARGS__)
#define DUET_EACH_6(f, x, ...)  f(x), DUET_EACH_5(f, __VA_ARGS__)
#define DUET_EACH_7(f, x, ...)  f(x), DUET_EACH_6(f, __VA_ARGS__)
#define DUET_EACH_8(f, x, ...)  f(x), DUET_EACH_7(f, __VA_ARGS__)
#define DUET_EACH_9(f, x, ...)  f(x), DUET_EACH_8(f, __VA_ARGS__)
#define DUET_EACH_10(f, x, ...) f(x), DUET_EACH_9(f, __VA_ARGS__)
#define DUET_EACH_11(f, x, ...) f(x), DUET_EACH_10(f, __VA_ARGS__)
#define DUET_EACH_12(f, x, ...) f(x), DUET_EACH_11(f, __VA_ARGS__)
#define DUET_EACH_13(f, x, ...) f(x), DUET_EACH_12(f, __VA_ARGS__)
#define DUET_EACH_14(f, x, ...) f(x), DUET_EACH_13(f, __VA_ARGS__)
#define DUET_EACH_15(f, x, ...) f(x), DUET_EACH_14(f, __VA_ARGS__)
#define DUET_EACH_16(f, x, ...) f(x), DUET_EACH_15(f, __VA_ARGS__)

/* A list of operands as a count and an array of formulas. */
#define DUET_EXPRS(...)                                                                                      \
    DUET_NUMBER_OF(__VA_ARGS__), (const duet_expr[]) { DUET_EACH(DUET, __VA_ARGS__) }

/* A list of formulas and variables, as an array and a count. */
#define DUET_PAIRS(...)                                                                                      \
    (const duet_item_entry[]){ DUET_SIXTEENTH(__VA_ARGS__, DUET_PAIR_8, 0, DUET_PAIR_7, 0, DUET_PAIR_6, 0,   \
                                              DUET_PAIR_5, 0, DUET_PAIR_4, 0, DUET_PAIR_3, 0, DUET_PAIR_2,   \
                                              0, DUET_PAIR_1, 0, 0)(__VA_ARGS__) },                          \
        DUET_NUMBER_OF(__VA_ARGS__) / 2
#define DUET_PAIR_1(e, x)                                                                                    \
    {                                                                                                        \
        DUET(e), DUET_TYPE_OF(x), x                                                                          \
    }
#define DUET_PAIR_2(e, x, ...) DUET_PAIR_1(e, x), DUET_PAIR_1(__VA_ARGS__)
#define DUET_PAIR_3(e, x, ...) DUET_PAIR_1(e, x), DUET_PAIR_2(__VA_ARGS__)
#define DUET_PAIR_4(e, x, ...) DUET_PAIR_1(e, x), DUET_PAIR_3(__VA_ARGS__)
#define DUET_PAIR_5(e, x, ...) DUET_PAIR_1(e, x), DUET_PAIR_4(__VA_ARGS__)
#define DUET_PAIR_6(e, x, ...) DUET_PAIR_1(e, x), DUET_PAIR_5(__VA_ARGS__)
#define DUET_PAIR_7(e, x, ...) DUET_PAIR_1(e, x), DUET_PAIR_6(__VA_ARGS__)
#define DUET_PAIR_8(e, x, ...) DUET_PAIR_1(e, x), DUET_PAIR_7(__VA_ARGS__)
#define duet_item(...)                                                                                       \
    DUET_SIXTEENTH(__VA_ARGS__, DUET_ITEMS, 0, DUET_ITEMS, 0, DUET_ITEMS, 0, DUET_ITEMS, 0, DUET_ITEMS, 0,   \
                   DUET_ITEMS, 0, DUET_ITEMS, 0, DUET_ITEM, 0, 0)                                            \
    (__VA_ARGS__)
#define DUET_ITEM(e, x)         duet_item_at(DUET(e), DUET_TYPE_OF(x), x, DUET_HERE)
#define DUET_ITEMS(...)         duet_items_at(DUET_PAIRS(__VA_ARGS__), DUET_HERE)
#define duet_items(list, count) duet_items_at(list, count, DUET_HERE)

/* Items to print. */
static inline duet_printed duet_printed_text(const char *x)
{
    return (duet_printed){ .kind = DUET_PRINTED_TEXT, .text = x };
}
static inline duet_printed duet_printed_matrix(const duet_matrix *m)
{
    return (duet_printed){ .kind = DUET_PRINTED_MATRIX, .m = m };
}
static inline duet_printed duet_printed_formula(duet_expr e)
{
    return (duet_printed){ .kind = DUET_PRINTED_FORMULA, .e = e };
}
static inline duet_printed duet_printed_complex(double _Complex z)
{
    return duet_printed_formula(duet_of_complex(z));
}
static inline duet_printed duet_printed_double(double x)
{
    return (duet_printed){ .kind = DUET_PRINTED_NUMBER, .type = DUET_F64, .f64 = x };
}
static inline duet_printed duet_printed_float(float x)
{
    return (duet_printed){ .kind = DUET_PRINTED_NUMBER, .type = DUET_F32, .f32 = x };
}
static inline duet_printed duet_printed_integer(int64_t x)
{
    return (duet_printed){ .kind = DUET_PRINTED_NUMBER, .type = DUET_I64, .i64 = x };
}
static inline duet_printed duet_printed_unsigned(uint64_t x)
{
    return (duet_printed){ .kind = DUET_PRINTED_NUMBER, .type = DUET_U64, .u64 = x };
}
#define DUET_PRINTED_AS(x)                                                                                   \
    _Generic((x),                                                                                            \
        char *: duet_printed_text, const char *: duet_printed_text,                                          \
        duet_matrix *: duet_printed_matrix, const duet_matrix *: duet_printed_matrix,                        \
        void *: duet_printed_matrix,                                                                         \
        duet_expr: duet_printed_formula,                                                                     \
        float _Complex: duet_printed_complex, double _Complex: duet_printed_complex,                         \
        long double _Complex: duet_printed_complex,                                                          \
        float: duet_printed_float, double: duet_printed_double, long double: duet_printed_double,            \
        unsigned long: duet_printed_unsigned, unsigned long long: duet_printed_unsigned,                     \
        default: DUET_REAL_OR(x, duet_printed_double, duet_printed_integer))(x)
#ifdef __GNUC__
#define DUET_PRINTED(x)      DUET_PRINTED_1(x, __COUNTER__)
#define DUET_PRINTED_1(x, n) DUET_PRINTED_2(x, n)
#define DUET_PRINTED_2(x, n)                                                                                 \
    __extension__({                                                                                          \
        __auto_type duet_##n = (x);                                                                          \
        DUET_PRINTED_AS(duet_##n);                                                                           \
    })
#else
#define DUET_PRINTED(x) DUET_PRINTED_AS(x)
#endif
#define duet_print(out, ...)                                                                                 \
    duet_print_all_at(out, (const duet_printed[]){ DUET_EACH(DUET_PRINTED, __VA_ARGS__) },                   \
                      DUET_NUMBER_OF(__VA_ARGS__), DUET_HERE)
/* Calls with one or two operands and options, which may be missing. The comma after __VA_ARGS__ makes the
 * list of options an empty argument then, and not a missing one; __extension__ allows the empty braces.
 * Pedantic compilers would warn of either. */
#define DUET_WITH_OPTIONS(...)               DUET_OPTIONS(__VA_ARGS__, )
#define DUET_WITH_OPTIONS_2(...)             DUET_OPTIONS_2(__VA_ARGS__, )
#define DUET_OPTIONS(function, type, x, ...) function(DUET(x), DUET_OPTION(type, __VA_ARGS__), DUET_HERE)
#define DUET_OPTIONS_2(function, type, x, y, ...)                                                            \
    function(DUET(x), DUET(y), DUET_OPTION(type, __VA_ARGS__), DUET_HERE)
#define DUET_WITH_OPTIONS_3(...) DUET_OPTIONS_3(__VA_ARGS__, )
#define DUET_OPTIONS_3(function, type, x, y, z, ...)                                                         \
    function(DUET(x), DUET(y), DUET(z), DUET_OPTION(type, __VA_ARGS__), DUET_HERE)
#define DUET_OPTION(type, ...)                                                                               \
    __extension__ &(const type) { __VA_ARGS__ }

#define duet_print_all(out, list, count) duet_print_all_at(out, list, count, DUET_HERE)

#define duet_iota(type, n)      duet_iota_at(type, n, DUET_HERE)
#define duet_grad(y, x)         duet_grad_at(DUET(y), x, DUET_HERE)
#define duet_vjp(y, x, g)       duet_vjp_at(DUET(y), x, DUET(g), DUET_HERE)
#define duet_stop_gradient(x)   duet_stop_gradient_at(DUET(x), DUET_HERE)
#define duet_checkpoint(x)      duet_checkpoint_at(DUET(x), DUET_HERE)
#define duet_concat(axis, ...)  duet_concat_at(axis, DUET_EXPRS(__VA_ARGS__), DUET_HERE)
#define duet_stack(axis, ...)   duet_stack_at(axis, DUET_EXPRS(__VA_ARGS__), DUET_HERE)
#define duet_tile(x, ...)       duet_tile_at(DUET(x), DUET_SIZES(__VA_ARGS__), DUET_HERE)
#define duet_repeat(x, n, axis) duet_repeat_at(DUET(x), n, axis, DUET_HERE)
#define duet_roll(x, by, axis)  duet_roll_at(DUET(x), by, axis, DUET_HERE)
#define duet_pad(...)           DUET_WITH_OPTIONS(duet_pad_at, duet_padding, __VA_ARGS__)
#define duet_im2col(...)        DUET_WITH_OPTIONS(duet_im2col_at, duet_windows, __VA_ARGS__)

#define duet_global_norm(...)         duet_global_norm_at(DUET_EXPRS(__VA_ARGS__), DUET_HERE)
#define duet_clip_norm(g, norm, most) duet_clip_norm_at(DUET(g), DUET(norm), DUET(most), DUET_HERE)
/* Give options by name: duet_sgd(w, g, 0.1, .momentum = 0.9, .velocity = v). The comma at the end is that of
 * DUET_WITH_OPTIONS. */
#define duet_sgd(w, ...)     DUET_SGD(duet_sgd_at, duet_sgd_options, w, __VA_ARGS__, )
#define duet_adam(w, ...)    DUET_ADAM(duet_adam_at, w, __VA_ARGS__, )
#define duet_adamw(w, ...)   DUET_ADAM(duet_adamw_at, w, __VA_ARGS__, )
#define duet_rmsprop(w, ...) DUET_RMSPROP(duet_rmsprop_at, duet_rmsprop_options, w, __VA_ARGS__, )
#define duet_adagrad(w, ...) DUET_RMSPROP(duet_adagrad_at, duet_adagrad_options, w, __VA_ARGS__, )
#define DUET_SGD(function, type, w, g, rate, ...)                                                            \
    function(w, DUET(g), DUET(rate), DUET_OPTION(type, __VA_ARGS__), DUET_HERE)
#define DUET_ADAM(function, w, g, mean, square, rate, step, ...)                                             \
    function(w, DUET(g), mean, square, DUET(rate), DUET(step), DUET_OPTION(duet_adam_options, __VA_ARGS__),  \
             DUET_HERE)
#define DUET_RMSPROP(function, type, w, g, square, rate, ...)                                                \
    function(w, DUET(g), square, DUET(rate), DUET_OPTION(type, __VA_ARGS__), DUET_HERE)

#define duet_masked(x, mask)            duet_masked_at(DUET(x), DUET(mask), DUET_HERE)
#define duet_nonzero(x)                 duet_nonzero_at(DUET(x), DUET_HERE)
#define duet_unique(x, counts, inverse) duet_unique_at(DUET(x), counts, inverse, DUET_HERE)
#define duet_unique_axis(x, axis, counts, inverse)                                                           \
    duet_unique_axis_at(DUET(x), axis, counts, inverse, DUET_HERE)

#define duet_neg(x)      duet_neg_at(DUET(x), DUET_HERE)
#define duet_abs(x)      duet_abs_at(DUET(x), DUET_HERE)
#define duet_sqrt(x)     duet_sqrt_at(DUET(x), DUET_HERE)
#define duet_exp(x)      duet_exp_at(DUET(x), DUET_HERE)
#define duet_exp2(x)     duet_exp2_at(DUET(x), DUET_HERE)
#define duet_expm1(x)    duet_expm1_at(DUET(x), DUET_HERE)
#define duet_log(x)      duet_log_at(DUET(x), DUET_HERE)
#define duet_log2(x)     duet_log2_at(DUET(x), DUET_HERE)
#define duet_log10(x)    duet_log10_at(DUET(x), DUET_HERE)
#define duet_log1p(x)    duet_log1p_at(DUET(x), DUET_HERE)
#define duet_cbrt(x)     duet_cbrt_at(DUET(x), DUET_HERE)
#define duet_rsqrt(x)    duet_rsqrt_at(DUET(x), DUET_HERE)
#define duet_sinh(x)     duet_sinh_at(DUET(x), DUET_HERE)
#define duet_cosh(x)     duet_cosh_at(DUET(x), DUET_HERE)
#define duet_tanh(x)     duet_tanh_at(DUET(x), DUET_HERE)
#define duet_asinh(x)    duet_asinh_at(DUET(x), DUET_HERE)
#define duet_acosh(x)    duet_acosh_at(DUET(x), DUET_HERE)
#define duet_atanh(x)    duet_atanh_at(DUET(x), DUET_HERE)
#define duet_sigmoid(x)  duet_sigmoid_at(DUET(x), DUET_HERE)
#define duet_softplus(x) duet_softplus_at(DUET(x), DUET_HERE)
#define duet_sin(x)      duet_sin_at(DUET(x), DUET_HERE)
#define duet_cos(x)      duet_cos_at(DUET(x), DUET_HERE)
#define duet_tan(x)      duet_tan_at(DUET(x), DUET_HERE)
#define duet_asin(x)     duet_asin_at(DUET(x), DUET_HERE)
#define duet_acos(x)     duet_acos_at(DUET(x), DUET_HERE)
#define duet_atan(x)     duet_atan_at(DUET(x), DUET_HERE)
#define duet_erf(x)      duet_erf_at(DUET(x), DUET_HERE)
#define duet_erfc(x)     duet_erfc_at(DUET(x), DUET_HERE)
#define duet_ncdf(x)     duet_ncdf_at(DUET(x), DUET_HERE)
#define duet_gelu(x)     duet_gelu_at(DUET(x), DUET_HERE)
#define duet_relu(x)     duet_relu_at(DUET(x), DUET_HERE)

#define duet_floor(x)   duet_floor_at(DUET(x), DUET_HERE)
#define duet_ceil(x)    duet_ceil_at(DUET(x), DUET_HERE)
#define duet_trunc(x)   duet_trunc_at(DUET(x), DUET_HERE)
#define duet_round(x)   duet_round_at(DUET(x), DUET_HERE)
#define duet_sign(x)    duet_sign_at(DUET(x), DUET_HERE)
#define duet_signbit(x) duet_signbit_at(DUET(x), DUET_HERE)

#define duet_add(x, y)           duet_add_at(DUET(x), DUET(y), DUET_HERE)
#define duet_sub(x, y)           duet_sub_at(DUET(x), DUET(y), DUET_HERE)
#define duet_mul(x, y)           duet_mul_at(DUET(x), DUET(y), DUET_HERE)
#define duet_div(x, y)           duet_div_at(DUET(x), DUET(y), DUET_HERE)
#define duet_pow(x, y)           duet_pow_at(DUET(x), DUET(y), DUET_HERE)
#define duet_hypot(x, y)         duet_hypot_at(DUET(x), DUET(y), DUET_HERE)
#define duet_copysign(x, y)      duet_copysign_at(DUET(x), DUET(y), DUET_HERE)
#define duet_nextafter(x, y)     duet_nextafter_at(DUET(x), DUET(y), DUET_HERE)
#define duet_atan2(y, x)         duet_atan2_at(DUET(y), DUET(x), DUET_HERE)
#define duet_minimum(x, y)       duet_minimum_at(DUET(x), DUET(y), DUET_HERE)
#define duet_maximum(x, y)       duet_maximum_at(DUET(x), DUET(y), DUET_HERE)
#define duet_equal(x, y)         duet_equal_at(DUET(x), DUET(y), DUET_HERE)
#define duet_not_equal(x, y)     duet_not_equal_at(DUET(x), DUET(y), DUET_HERE)
#define duet_less(x, y)          duet_less_at(DUET(x), DUET(y), DUET_HERE)
#define duet_less_equal(x, y)    duet_less_equal_at(DUET(x), DUET(y), DUET_HERE)
#define duet_greater(x, y)       duet_greater_at(DUET(x), DUET(y), DUET_HERE)
#define duet_greater_equal(x, y) duet_greater_equal_at(DUET(x), DUET(y), DUET_HERE)
#define duet_logical_and(x, y)   duet_logical_and_at(DUET(x), DUET(y), DUET_HERE)
#define duet_logical_or(x, y)    duet_logical_or_at(DUET(x), DUET(y), DUET_HERE)
#define duet_logical_xor(x, y)   duet_logical_xor_at(DUET(x), DUET(y), DUET_HERE)
#define duet_logical_not(x)      duet_logical_not_at(DUET(x), DUET_HERE)
#define duet_fma(x, y, z)        duet_fma_at(DUET(x), DUET(y), DUET(z), DUET_HERE)
#define duet_where(x, y, z)      duet_where_at(DUET(x), DUET(y), DUET(z), DUET_HERE)

#define duet_bitwise_not(x)     duet_bitwise_not_at(DUET(x), DUET_HERE)
#define duet_bitwise_and(x, y)  duet_bitwise_and_at(DUET(x), DUET(y), DUET_HERE)
#define duet_bitwise_or(x, y)   duet_bitwise_or_at(DUET(x), DUET(y), DUET_HERE)
#define duet_bitwise_xor(x, y)  duet_bitwise_xor_at(DUET(x), DUET(y), DUET_HERE)
#define duet_shift_left(x, y)   duet_shift_left_at(DUET(x), DUET(y), DUET_HERE)
#define duet_shift_right(x, y)  duet_shift_right_at(DUET(x), DUET(y), DUET_HERE)
#define duet_floor_divide(x, y) duet_floor_divide_at(DUET(x), DUET(y), DUET_HERE)
#define duet_remainder(x, y)    duet_remainder_at(DUET(x), DUET(y), DUET_HERE)
#define duet_fmod(x, y)         duet_fmod_at(DUET(x), DUET(y), DUET_HERE)

/* A reduction with one operand reduces all elements; with axes behind it, it reduces along these:
 * duet_sum(x), duet_sum(x, 0), duet_sum(x, 0, 2). For axes that are known only when the program runs, as
 * a count and an array: DUET_ALONG(duet_sum, x, count, axes). */
#define DUET_NINTH(x, a, b, c, d, e, f, g, h, which, ...) which
#define DUET_REDUCE(name, ...)                                                                               \
    DUET_NINTH(__VA_ARGS__, DUET_OVER, DUET_OVER, DUET_OVER, DUET_OVER, DUET_OVER, DUET_OVER, DUET_OVER,     \
               DUET_OVER, DUET_OVER_ALL, 0)                                                                  \
    (name, __VA_ARGS__)
#define DUET_OVER(name, x, ...)                              name##_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define DUET_OVER_ALL(name, x)                               name##_at(DUET(x), DUET_HERE)
#define DUET_ALONG(name, x, count, axis)                     name##_axes_at(DUET(x), count, axis, DUET_HERE)
#define DUET_TENTH(x, y, a, b, c, d, e, f, g, h, which, ...) which
#define DUET_REDUCE_2(name, ...)                                                                             \
    DUET_TENTH(__VA_ARGS__, DUET_OVER_2, DUET_OVER_2, DUET_OVER_2, DUET_OVER_2, DUET_OVER_2, DUET_OVER_2,    \
               DUET_OVER_2, DUET_OVER_2, DUET_OVER_ALL_2, 0, 0)                                              \
    (name, __VA_ARGS__)
#define DUET_OVER_2(name, x, y, ...) name##_axes_at(DUET(x), DUET(y), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define DUET_OVER_ALL_2(name, x, y)  name##_at(DUET(x), DUET(y), DUET_HERE)
#define DUET_THIRD(x, a, which, ...) which
#define DUET_REDUCE_PLACE(name, ...) DUET_THIRD(__VA_ARGS__, DUET_OVER_1, DUET_OVER_ALL, 0)(name, __VA_ARGS__)
#define DUET_OVER_1(name, x, axis)   name##_axis_at(DUET(x), axis, DUET_HERE)

#define duet_sum(...)               DUET_REDUCE(duet_sum, __VA_ARGS__)
#define duet_sum_axis(x, axis)      duet_sum_axis_at(DUET(x), axis, DUET_HERE)
#define duet_sum_keep(x, axis)      duet_sum_keep_at(DUET(x), axis, DUET_HERE)
#define duet_sum_axes(x, ...)       duet_sum_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_sum_axes_keep(x, ...)  duet_sum_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_mean(...)              DUET_REDUCE(duet_mean, __VA_ARGS__)
#define duet_mean_axis(x, axis)     duet_mean_axis_at(DUET(x), axis, DUET_HERE)
#define duet_mean_keep(x, axis)     duet_mean_keep_at(DUET(x), axis, DUET_HERE)
#define duet_mean_axes(x, ...)      duet_mean_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_mean_axes_keep(x, ...) duet_mean_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_min(...)               DUET_REDUCE(duet_min, __VA_ARGS__)
#define duet_min_axis(x, axis)      duet_min_axis_at(DUET(x), axis, DUET_HERE)
#define duet_min_keep(x, axis)      duet_min_keep_at(DUET(x), axis, DUET_HERE)
#define duet_min_axes(x, ...)       duet_min_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_min_axes_keep(x, ...)  duet_min_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_max(...)               DUET_REDUCE(duet_max, __VA_ARGS__)
#define duet_max_axis(x, axis)      duet_max_axis_at(DUET(x), axis, DUET_HERE)
#define duet_max_keep(x, axis)      duet_max_keep_at(DUET(x), axis, DUET_HERE)
#define duet_max_axes(x, ...)       duet_max_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_max_axes_keep(x, ...)  duet_max_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_norm(...)              DUET_REDUCE(duet_norm, __VA_ARGS__)
#define duet_norm_axis(x, axis)     duet_norm_axis_at(DUET(x), axis, DUET_HERE)
#define duet_norm_keep(x, axis)     duet_norm_keep_at(DUET(x), axis, DUET_HERE)
#define duet_norm_axes(x, ...)      duet_norm_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_norm_axes_keep(x, ...) duet_norm_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_dot(...)               DUET_REDUCE_2(duet_dot, __VA_ARGS__)
#define duet_dot_axis(x, y, axis)   duet_dot_axis_at(DUET(x), DUET(y), axis, DUET_HERE)
#define duet_dot_keep(x, y, axis)   duet_dot_keep_at(DUET(x), DUET(y), axis, DUET_HERE)
#define duet_dot_axes(x, y, ...)    duet_dot_axes_at(DUET(x), DUET(y), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_dot_axes_keep(x, y, ...)                                                                        \
    duet_dot_axes_keep_at(DUET(x), DUET(y), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_any(...)               DUET_REDUCE(duet_any, __VA_ARGS__)
#define duet_any_axis(x, axis)      duet_any_axis_at(DUET(x), axis, DUET_HERE)
#define duet_any_keep(x, axis)      duet_any_keep_at(DUET(x), axis, DUET_HERE)
#define duet_any_axes(x, ...)       duet_any_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_any_axes_keep(x, ...)  duet_any_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_all(...)               DUET_REDUCE(duet_all, __VA_ARGS__)
#define duet_all_axis(x, axis)      duet_all_axis_at(DUET(x), axis, DUET_HERE)
#define duet_all_keep(x, axis)      duet_all_keep_at(DUET(x), axis, DUET_HERE)
#define duet_all_axes(x, ...)       duet_all_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_all_axes_keep(x, ...)  duet_all_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_prod(...)              DUET_REDUCE(duet_prod, __VA_ARGS__)
#define duet_prod_axis(x, axis)     duet_prod_axis_at(DUET(x), axis, DUET_HERE)
#define duet_prod_keep(x, axis)     duet_prod_keep_at(DUET(x), axis, DUET_HERE)
#define duet_prod_axes(x, ...)      duet_prod_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_prod_axes_keep(x, ...) duet_prod_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_var(...)               DUET_REDUCE(duet_var, __VA_ARGS__)
#define duet_var_axis(x, axis)      duet_var_axis_at(DUET(x), axis, DUET_HERE)
#define duet_var_keep(x, axis)      duet_var_keep_at(DUET(x), axis, DUET_HERE)
#define duet_var_axes(x, ...)       duet_var_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_var_axes_keep(x, ...)  duet_var_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_argmin(...)            DUET_REDUCE_PLACE(duet_argmin, __VA_ARGS__)
#define duet_argmin_axis(x, axis)   duet_argmin_axis_at(DUET(x), axis, DUET_HERE)
#define duet_argmin_keep(x, axis)   duet_argmin_keep_at(DUET(x), axis, DUET_HERE)
#define duet_argmax(...)            DUET_REDUCE_PLACE(duet_argmax, __VA_ARGS__)
#define duet_argmax_axis(x, axis)   duet_argmax_axis_at(DUET(x), axis, DUET_HERE)
#define duet_argmax_keep(x, axis)   duet_argmax_keep_at(DUET(x), axis, DUET_HERE)

#define duet_cast(x, type) duet_cast_at(DUET(x), type, DUET_HERE)
#define duet_real(x)       duet_real_at(DUET(x), DUET_HERE)
#define duet_imag(x)       duet_imag_at(DUET(x), DUET_HERE)
#define duet_conj(x)       duet_conj_at(DUET(x), DUET_HERE)
#define duet_arg(x)        duet_arg_at(DUET(x), DUET_HERE)
#define duet_complex(x, y) duet_complex_at(DUET(x), DUET(y), DUET_HERE)
#define duet_transpose(x)  duet_transpose_at(DUET(x), DUET_HERE)
/* duet_softmax(x), or duet_softmax(x, axis). */
#define DUET_ONE_OPERAND(name, x) name##_at(DUET(x), DUET_HERE)
#define DUET_ALONG_AXIS(name, ...)                                                                           \
    DUET_THIRD(__VA_ARGS__, DUET_OVER_1, DUET_ONE_OPERAND, 0)(name, __VA_ARGS__)
#define duet_softmax(...)              DUET_ALONG_AXIS(duet_softmax, __VA_ARGS__)
#define duet_log_softmax(...)          DUET_ALONG_AXIS(duet_log_softmax, __VA_ARGS__)
#define duet_softmax_axis(x, axis)     duet_softmax_axis_at(DUET(x), axis, DUET_HERE)
#define duet_log_softmax_axis(x, axis) duet_log_softmax_axis_at(DUET(x), axis, DUET_HERE)
#define duet_matmul(x, y)              duet_matmul_at(DUET(x), DUET(y), DUET_HERE)
#define duet_bias_add(x, y)            duet_bias_add_at(DUET(x), DUET(y), DUET_HERE)

#define duet_reshape(x, ...)                   duet_reshape_at(DUET(x), DUET_SIZES(__VA_ARGS__), DUET_HERE)
#define duet_broadcast(x, ...)                 duet_broadcast_at(DUET(x), DUET_SIZES(__VA_ARGS__), DUET_HERE)
#define duet_permute(x, ...)                   duet_permute_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_index(x, ...)                     duet_index_at(DUET(x), DUET_ENTRIES(__VA_ARGS__), DUET_HERE)
#define duet_range(x, axis, start, stop, step) duet_range_at(DUET(x), axis, start, stop, step, DUET_HERE)
#define duet_append(x, y, axis)                duet_append_at(DUET(x), DUET(y), axis, DUET_HERE)
#define duet_sliding_window(x, axis, size, stride, dilation)                                                 \
    duet_sliding_window_at(DUET(x), axis, size, stride, dilation, DUET_HERE)
#define duet_diagonal_of(x, offset)  duet_diagonal_of_at(DUET(x), offset, DUET_HERE)
#define duet_flip(x, axis)           duet_flip_at(DUET(x), axis, DUET_HERE)
#define duet_pick(x, axis, i)        duet_pick_at(DUET(x), axis, i, DUET_HERE)
#define duet_part(x, axis, count, k) duet_part_at(DUET(x), axis, count, k, DUET_HERE)
#define duet_expand_dims(x, axis)    duet_expand_dims_at(DUET(x), axis, DUET_HERE)
#define duet_squeeze(x, axis)        duet_squeeze_at(DUET(x), axis, DUET_HERE)
#define duet_moveaxis(x, from, to)   duet_moveaxis_at(DUET(x), from, to, DUET_HERE)
#define duet_swapaxes(x, i, j)       duet_swapaxes_at(DUET(x), i, j, DUET_HERE)

/* duet_cumsum(x, axis), or with options behind: duet_cumsum(x, axis, .exclusive = 1). */
#define DUET_SCAN_PLAIN(name, x, axis) name##_at(DUET(x), axis, DUET_HERE)
#define DUET_SCAN_WITH(name, x, axis, ...)                                                                   \
    name##_with_at(DUET(x), axis, DUET_OPTION(duet_scan, __VA_ARGS__), DUET_HERE)
#define DUET_SCAN(name, ...)                                                                                 \
    DUET_SIXTH(__VA_ARGS__, DUET_SCAN_WITH, DUET_SCAN_WITH, DUET_SCAN_WITH, DUET_SCAN_PLAIN, 0, 0)           \
    (name, __VA_ARGS__)
#define DUET_SIXTH(x, axis, a, b, c, which, ...) which
#define duet_cumsum(...)                         DUET_SCAN(duet_cumsum, __VA_ARGS__)
#define duet_cumprod(...)                        DUET_SCAN(duet_cumprod, __VA_ARGS__)
#define duet_take(x, y, axis)                    duet_take_at(DUET(x), DUET(y), axis, DUET_HERE)
#define duet_take_along_axis(x, y, axis)         duet_take_along_axis_at(DUET(x), DUET(y), axis, DUET_HERE)
/* duet_one_hot(indices, n, type), or with the axis of the classes as the last argument. */
#define DUET_FIFTH(x, n, type, axis, which, ...) which
#define DUET_ONE_HOT_LAST(x, n, type)            duet_one_hot_at(DUET(x), n, type, DUET_HERE)
#define duet_one_hot_axis(x, n, type, axis)      duet_one_hot_axis_at(DUET(x), n, type, axis, DUET_HERE)
#define duet_one_hot(...)                        DUET_FIFTH(__VA_ARGS__, duet_one_hot_axis, DUET_ONE_HOT_LAST, 0, 0)(__VA_ARGS__)
#define duet_put(x, y, z, axis)                  duet_put_at(DUET(x), DUET(y), DUET(z), axis, DUET_HERE)
#define duet_scatter_add(x, y, z, axis)          duet_scatter_add_at(DUET(x), DUET(y), DUET(z), axis, DUET_HERE)
#define duet_scatter_mul(x, y, z, axis)          duet_scatter_mul_at(DUET(x), DUET(y), DUET(z), axis, DUET_HERE)
#define duet_scatter_min(x, y, z, axis)          duet_scatter_min_at(DUET(x), DUET(y), DUET(z), axis, DUET_HERE)
#define duet_put_along_axis(x, y, z, axis)       duet_put_along_axis_at(DUET(x), DUET(y), DUET(z), axis, DUET_HERE)
#define duet_scatter_along_axis(x, y, z, axis, how)                                                          \
    duet_scatter_along_axis_at(DUET(x), DUET(y), DUET(z), axis, how, DUET_HERE)
#define duet_gather_nd(x, y)              duet_gather_nd_at(DUET(x), DUET(y), DUET_HERE)
#define duet_scatter_nd(x, y, z, how)     duet_scatter_nd_at(DUET(x), DUET(y), DUET(z), how, DUET_HERE)
#define duet_scatter_max(x, y, z, axis)   duet_scatter_max_at(DUET(x), DUET(y), DUET(z), axis, DUET_HERE)
#define duet_sort(x, axis)                duet_sort_at(DUET(x), axis, DUET_HERE)
#define duet_argsort(x, axis)             duet_argsort_at(DUET(x), axis, DUET_HERE)
#define duet_top_k(x, k, axis)            duet_top_k_at(DUET(x), k, axis, DUET_HERE)
#define duet_top_k_indices(x, k, axis)    duet_top_k_indices_at(DUET(x), k, axis, DUET_HERE)
#define duet_bottom_k(x, k, axis)         duet_bottom_k_at(DUET(x), k, axis, DUET_HERE)
#define duet_bottom_k_indices(x, k, axis) duet_bottom_k_indices_at(DUET(x), k, axis, DUET_HERE)
#define duet_trunc_divide(x, y)           duet_trunc_divide_at(DUET(x), DUET(y), DUET_HERE)
#define duet_histogram(x, low, high, n)   duet_histogram_at(DUET(x), low, high, n, DUET_HERE)

/* Give options by name: duet_conv2d(x, w, .pad = {1, 1}), duet_max_pool2d(x, .window = {2, 2}). */
#define duet_conv2d(...)     DUET_WITH_OPTIONS_2(duet_conv2d_at, duet_conv, __VA_ARGS__)
#define duet_convolve2d(...) DUET_WITH_OPTIONS_2(duet_convolve2d_at, duet_conv, __VA_ARGS__)
#define duet_conv2d_input_grad(...)                                                                          \
    DUET_WITH_OPTIONS_2(duet_conv2d_input_grad_at, duet_conv_grad, __VA_ARGS__)
#define duet_conv2d_filter_grad(...)                                                                         \
    DUET_WITH_OPTIONS_2(duet_conv2d_filter_grad_at, duet_conv_grad, __VA_ARGS__)
#define duet_conv_transpose2d(...)                                                                           \
    DUET_WITH_OPTIONS_2(duet_conv_transpose2d_at, duet_conv_transposed, __VA_ARGS__)
#define duet_max_pool2d(...)      DUET_WITH_OPTIONS(duet_max_pool2d_at, duet_pool, __VA_ARGS__)
#define duet_max_pool2d_grad(...) DUET_WITH_OPTIONS_2(duet_max_pool2d_grad_at, duet_pool, __VA_ARGS__)
#define duet_avg_pool2d_grad(...) DUET_WITH_OPTIONS(duet_avg_pool2d_grad_at, duet_pool_grad, __VA_ARGS__)
#define duet_upsample2d(x, h, w)  duet_upsample2d_at(DUET(x), &(const duet_scale){ { h, w } }, DUET_HERE)
#define duet_avg_pool2d(...)      DUET_WITH_OPTIONS(duet_avg_pool2d_at, duet_pool, __VA_ARGS__)

#define duet_conv1d(...)     DUET_WITH_OPTIONS_2(duet_conv1d_at, duet_conv1, __VA_ARGS__)
#define duet_convolve1d(...) DUET_WITH_OPTIONS_2(duet_convolve1d_at, duet_conv1, __VA_ARGS__)
#define duet_conv1d_input_grad(...)                                                                          \
    DUET_WITH_OPTIONS_2(duet_conv1d_input_grad_at, duet_conv1_grad, __VA_ARGS__)
#define duet_conv1d_filter_grad(...)                                                                         \
    DUET_WITH_OPTIONS_2(duet_conv1d_filter_grad_at, duet_conv1_grad, __VA_ARGS__)
#define duet_conv_transpose1d(...)                                                                           \
    DUET_WITH_OPTIONS_2(duet_conv_transpose1d_at, duet_conv1_transposed, __VA_ARGS__)
#define duet_max_pool1d(...)      DUET_WITH_OPTIONS(duet_max_pool1d_at, duet_pool1, __VA_ARGS__)
#define duet_avg_pool1d(...)      DUET_WITH_OPTIONS(duet_avg_pool1d_at, duet_pool1, __VA_ARGS__)
#define duet_max_pool1d_grad(...) DUET_WITH_OPTIONS_2(duet_max_pool1d_grad_at, duet_pool1, __VA_ARGS__)
#define duet_avg_pool1d_grad(...) DUET_WITH_OPTIONS(duet_avg_pool1d_grad_at, duet_pool1_grad, __VA_ARGS__)
#define duet_upsample1d(x, n)     duet_upsample1d_at(DUET(x), &(const duet_scale1){ n }, DUET_HERE)

#define duet_conv3d(...)     DUET_WITH_OPTIONS_2(duet_conv3d_at, duet_conv3, __VA_ARGS__)
#define duet_convolve3d(...) DUET_WITH_OPTIONS_2(duet_convolve3d_at, duet_conv3, __VA_ARGS__)
#define duet_conv3d_input_grad(...)                                                                          \
    DUET_WITH_OPTIONS_2(duet_conv3d_input_grad_at, duet_conv3_grad, __VA_ARGS__)
#define duet_conv3d_filter_grad(...)                                                                         \
    DUET_WITH_OPTIONS_2(duet_conv3d_filter_grad_at, duet_conv3_grad, __VA_ARGS__)
#define duet_conv_transpose3d(...)                                                                           \
    DUET_WITH_OPTIONS_2(duet_conv_transpose3d_at, duet_conv3_transposed, __VA_ARGS__)
#define duet_max_pool3d(...)      DUET_WITH_OPTIONS(duet_max_pool3d_at, duet_pool3, __VA_ARGS__)
#define duet_avg_pool3d(...)      DUET_WITH_OPTIONS(duet_avg_pool3d_at, duet_pool3, __VA_ARGS__)
#define duet_max_pool3d_grad(...) DUET_WITH_OPTIONS_2(duet_max_pool3d_grad_at, duet_pool3, __VA_ARGS__)
#define duet_avg_pool3d_grad(...) DUET_WITH_OPTIONS(duet_avg_pool3d_grad_at, duet_pool3_grad, __VA_ARGS__)
#define duet_upsample3d(x, d, h, w)                                                                          \
    duet_upsample3d_at(DUET(x), &(const duet_scale3){ { d, h, w } }, DUET_HERE)

#define duet_max_pool1d_indices(...)          DUET_WITH_OPTIONS(duet_max_pool1d_indices_at, duet_pool1, __VA_ARGS__)
#define duet_max_pool2d_indices(...)          DUET_WITH_OPTIONS(duet_max_pool2d_indices_at, duet_pool, __VA_ARGS__)
#define duet_max_pool3d_indices(...)          DUET_WITH_OPTIONS(duet_max_pool3d_indices_at, duet_pool3, __VA_ARGS__)
#define duet_interpolate(...)                 DUET_WITH_OPTIONS(duet_interpolate_at, duet_interpolation, __VA_ARGS__)
#define duet_cumsum_with(x, axis, options)    duet_cumsum_with_at(DUET(x), axis, options, DUET_HERE)
#define duet_cumprod_with(x, axis, options)   duet_cumprod_with_at(DUET(x), axis, options, DUET_HERE)
#define duet_p_max_pool_h(x, h, w)            duet_p_max_pool_h_at(DUET(x), h, w, DUET_HERE)
#define duet_p_max_pool_p(x, h, w)            duet_p_max_pool_p_at(DUET(x), h, w, DUET_HERE)
#define duet_convmtx(to, kernel, part)        duet_convmtx_at(to, kernel, part, DUET_HERE)
#define duet_convmtx2(to, kernel, h, w, part) duet_convmtx2_at(to, kernel, h, w, part, DUET_HERE)

/* The last argument is a duet_overlap: duet_convolve(x, y, DUET_OVERLAP_SAME). */
#define duet_convolve(x, y, overlap)        duet_convolve_at(DUET(x), DUET(y), overlap, DUET_HERE)
#define duet_correlate(x, y, overlap)       duet_correlate_at(DUET(x), DUET(y), overlap, DUET_HERE)
#define duet_convolve_multi(x, y, overlap)  duet_convolve_multi_at(DUET(x), DUET(y), overlap, DUET_HERE)
#define duet_correlate_multi(x, y, overlap) duet_correlate_multi_at(DUET(x), DUET(y), overlap, DUET_HERE)
#define duet_convolve_deep(x, y, overlap)   duet_convolve_deep_at(DUET(x), DUET(y), overlap, DUET_HERE)
#define duet_correlate_deep(x, y, overlap)  duet_correlate_deep_at(DUET(x), DUET(y), overlap, DUET_HERE)

/* Give the axes by name: duet_fftn(x), duet_rfftn(x, .axes = 2, .axis = {0, 1}). */
#define duet_fftn(...)             DUET_WITH_OPTIONS(duet_fftn_at, duet_fourier, __VA_ARGS__)
#define duet_ifftn(...)            DUET_WITH_OPTIONS(duet_ifftn_at, duet_fourier, __VA_ARGS__)
#define duet_rfftn(...)            DUET_WITH_OPTIONS(duet_rfftn_at, duet_fourier, __VA_ARGS__)
#define duet_irfftn(...)           DUET_WITH_OPTIONS(duet_irfftn_at, duet_fourier, __VA_ARGS__)
#define duet_fftshift(...)         DUET_WITH_OPTIONS(duet_fftshift_at, duet_fourier, __VA_ARGS__)
#define duet_ifftshift(...)        DUET_WITH_OPTIONS(duet_ifftshift_at, duet_fourier, __VA_ARGS__)
#define duet_fft(x, n, axis)       duet_fft_at(DUET(x), n, axis, DUET_HERE)
#define duet_ifft(x, n, axis)      duet_ifft_at(DUET(x), n, axis, DUET_HERE)
#define duet_rfft(x, n, axis)      duet_rfft_at(DUET(x), n, axis, DUET_HERE)
#define duet_irfft(x, n, axis)     duet_irfft_at(DUET(x), n, axis, DUET_HERE)
#define duet_fft2(x)               duet_fft2_at(DUET(x), DUET_HERE)
#define duet_ifft2(x)              duet_ifft2_at(DUET(x), DUET_HERE)
#define duet_rfft2(x)              duet_rfft2_at(DUET(x), DUET_HERE)
#define duet_irfft2(x)             duet_irfft2_at(DUET(x), DUET_HERE)
#define duet_fftconvolve(x, y, o)  duet_fftconvolve_at(DUET(x), DUET(y), o, DUET_HERE)
#define duet_fftcorrelate(x, y, o) duet_fftcorrelate_at(DUET(x), DUET(y), o, DUET_HERE)

#define duet_square(x)                   duet_square_at(DUET(x), DUET_HERE)
#define duet_reciprocal(x)               duet_reciprocal_at(DUET(x), DUET_HERE)
#define duet_invcbrt(x)                  duet_invcbrt_at(DUET(x), DUET_HERE)
#define duet_radians(x)                  duet_radians_at(DUET(x), DUET_HERE)
#define duet_degrees(x)                  duet_degrees_at(DUET(x), DUET_HERE)
#define duet_isnan(x)                    duet_isnan_at(DUET(x), DUET_HERE)
#define duet_isinf(x)                    duet_isinf_at(DUET(x), DUET_HERE)
#define duet_isfinite(x)                 duet_isfinite_at(DUET(x), DUET_HERE)
#define duet_silu(x)                     duet_silu_at(DUET(x), DUET_HERE)
#define duet_log_sigmoid(x)              duet_log_sigmoid_at(DUET(x), DUET_HERE)
#define duet_softsign(x)                 duet_softsign_at(DUET(x), DUET_HERE)
#define duet_mish(x)                     duet_mish_at(DUET(x), DUET_HERE)
#define duet_relu6(x)                    duet_relu6_at(DUET(x), DUET_HERE)
#define duet_hard_tanh(x)                duet_hard_tanh_at(DUET(x), DUET_HERE)
#define duet_hard_sigmoid(x)             duet_hard_sigmoid_at(DUET(x), DUET_HERE)
#define duet_hard_swish(x)               duet_hard_swish_at(DUET(x), DUET_HERE)
#define duet_selu(x)                     duet_selu_at(DUET(x), DUET_HERE)
#define duet_gelu_tanh(x)                duet_gelu_tanh_at(DUET(x), DUET_HERE)
#define duet_relu_derivative(x)          duet_relu_derivative_at(DUET(x), DUET_HERE)
#define duet_sigmoid_derivative(x)       duet_sigmoid_derivative_at(DUET(x), DUET_HERE)
#define duet_tanh_derivative(x)          duet_tanh_derivative_at(DUET(x), DUET_HERE)
#define duet_softplus_derivative(x)      duet_softplus_derivative_at(DUET(x), DUET_HERE)
#define duet_softsign_derivative(x)      duet_softsign_derivative_at(DUET(x), DUET_HERE)
#define duet_gelu_derivative(x)          duet_gelu_derivative_at(DUET(x), DUET_HERE)
#define duet_silu_derivative(x)          duet_silu_derivative_at(DUET(x), DUET_HERE)
#define duet_hard_sigmoid_derivative(x)  duet_hard_sigmoid_derivative_at(DUET(x), DUET_HERE)
#define duet_hard_tanh_derivative(x)     duet_hard_tanh_derivative_at(DUET(x), DUET_HERE)
#define duet_selu_derivative(x)          duet_selu_derivative_at(DUET(x), DUET_HERE)
#define duet_sigmoid_slope(x)            duet_sigmoid_slope_at(DUET(x), DUET_HERE)
#define duet_tanh_slope(x)               duet_tanh_slope_at(DUET(x), DUET_HERE)
#define duet_fast_sigmoid(x)             duet_fast_sigmoid_at(DUET(x), DUET_HERE)
#define duet_binarize(x, s)              duet_binarize_at(DUET(x), s, DUET_HERE)
#define duet_one_if(x, s)                duet_one_if_at(DUET(x), s, DUET_HERE)
#define duet_leaky_relu(x, s)            duet_leaky_relu_at(DUET(x), s, DUET_HERE)
#define duet_leaky_relu_derivative(x, s) duet_leaky_relu_derivative_at(DUET(x), s, DUET_HERE)
#define duet_elu(x, s)                   duet_elu_at(DUET(x), s, DUET_HERE)
#define duet_elu_derivative(x, s)        duet_elu_derivative_at(DUET(x), s, DUET_HERE)
#define duet_logaddexp(x, y)             duet_logaddexp_at(DUET(x), DUET(y), DUET_HERE)
#define duet_heaviside(x, y)             duet_heaviside_at(DUET(x), DUET(y), DUET_HERE)
#define duet_clip(x, y, z)               duet_clip_at(DUET(x), DUET(y), DUET(z), DUET_HERE)
#define duet_std(...)                    DUET_REDUCE(duet_std, __VA_ARGS__)
#define duet_std_axis(x, axis)           duet_std_axis_at(DUET(x), axis, DUET_HERE)
#define duet_std_keep(x, axis)           duet_std_keep_at(DUET(x), axis, DUET_HERE)
#define duet_std_axes(x, ...)            duet_std_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_std_axes_keep(x, ...)       duet_std_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_count_nonzero(...)          DUET_REDUCE(duet_count_nonzero, __VA_ARGS__)
#define duet_count_nonzero_axis(x, axis) duet_count_nonzero_axis_at(DUET(x), axis, DUET_HERE)
#define duet_count_nonzero_keep(x, axis) duet_count_nonzero_keep_at(DUET(x), axis, DUET_HERE)
#define duet_count_nonzero_axes(x, ...)  duet_count_nonzero_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_count_nonzero_axes_keep(x, ...)                                                                 \
    duet_count_nonzero_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_norm1(...)                 DUET_REDUCE(duet_norm1, __VA_ARGS__)
#define duet_norm1_axis(x, axis)        duet_norm1_axis_at(DUET(x), axis, DUET_HERE)
#define duet_norm1_keep(x, axis)        duet_norm1_keep_at(DUET(x), axis, DUET_HERE)
#define duet_norm1_axes(x, ...)         duet_norm1_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_norm1_axes_keep(x, ...)    duet_norm1_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_norm_inf(...)              DUET_REDUCE(duet_norm_inf, __VA_ARGS__)
#define duet_norm_inf_axis(x, axis)     duet_norm_inf_axis_at(DUET(x), axis, DUET_HERE)
#define duet_norm_inf_keep(x, axis)     duet_norm_inf_keep_at(DUET(x), axis, DUET_HERE)
#define duet_norm_inf_axes(x, ...)      duet_norm_inf_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_norm_inf_axes_keep(x, ...) duet_norm_inf_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_logsumexp(...)             DUET_REDUCE(duet_logsumexp, __VA_ARGS__)
#define duet_logsumexp_axis(x, axis)    duet_logsumexp_axis_at(DUET(x), axis, DUET_HERE)
#define duet_logsumexp_keep(x, axis)    duet_logsumexp_keep_at(DUET(x), axis, DUET_HERE)
#define duet_logsumexp_axes(x, ...)     duet_logsumexp_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_logsumexp_axes_keep(x, ...)                                                                     \
    duet_logsumexp_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_is_uniform(...)          DUET_REDUCE(duet_is_uniform, __VA_ARGS__)
#define duet_is_uniform_axis(x, axis) duet_is_uniform_axis_at(DUET(x), axis, DUET_HERE)
#define duet_is_uniform_keep(x, axis) duet_is_uniform_keep_at(DUET(x), axis, DUET_HERE)
#define duet_is_uniform_axes(x, ...)  duet_is_uniform_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_is_uniform_axes_keep(x, ...)                                                                    \
    duet_is_uniform_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)

#define duet_trace(x)                        duet_trace_at(DUET(x), DUET_HERE)
#define duet_is_square(x)                    duet_is_square_at(DUET(x), DUET_HERE)
#define duet_is_symmetric(x)                 duet_is_symmetric_at(DUET(x), DUET_HERE)
#define duet_is_hermitian(x)                 duet_is_hermitian_at(DUET(x), DUET_HERE)
#define duet_is_diagonal(x)                  duet_is_diagonal_at(DUET(x), DUET_HERE)
#define duet_is_triangular(x)                duet_is_triangular_at(DUET(x), DUET_HERE)
#define duet_is_lower_triangular(x)          duet_is_lower_triangular_at(DUET(x), DUET_HERE)
#define duet_is_upper_triangular(x)          duet_is_upper_triangular_at(DUET(x), DUET_HERE)
#define duet_is_strictly_lower_triangular(x) duet_is_strictly_lower_triangular_at(DUET(x), DUET_HERE)
#define duet_is_strictly_upper_triangular(x) duet_is_strictly_upper_triangular_at(DUET(x), DUET_HERE)
#define duet_is_unit_lower_triangular(x)     duet_is_unit_lower_triangular_at(DUET(x), DUET_HERE)
#define duet_is_unit_upper_triangular(x)     duet_is_unit_upper_triangular_at(DUET(x), DUET_HERE)
#define duet_is_permutation(x)               duet_is_permutation_at(DUET(x), DUET_HERE)
#define duet_array_equal(x, y)               duet_array_equal_at(DUET(x), DUET(y), DUET_HERE)
#define duet_allclose(x, y, relative, absolute)                                                              \
    duet_allclose_at(DUET(x), DUET(y), relative, absolute, DUET_HERE)
#define duet_pow_int(x, n) duet_pow_int_at(DUET(x), n, DUET_HERE)

#define duet_softmax_grad(x, y)              duet_softmax_grad_at(DUET(x), DUET(y), DUET_HERE)
#define duet_log_softmax_grad(x, y)          duet_log_softmax_grad_at(DUET(x), DUET(y), DUET_HERE)
#define duet_mse(x, y)                       duet_mse_at(DUET(x), DUET(y), DUET_HERE)
#define duet_mse_grad(x, y)                  duet_mse_grad_at(DUET(x), DUET(y), DUET_HERE)
#define duet_binary_cross_entropy(x, y)      duet_binary_cross_entropy_at(DUET(x), DUET(y), DUET_HERE)
#define duet_binary_cross_entropy_grad(x, y) duet_binary_cross_entropy_grad_at(DUET(x), DUET(y), DUET_HERE)
#define duet_binary_cross_entropy_logits(x, y)                                                               \
    duet_binary_cross_entropy_logits_at(DUET(x), DUET(y), DUET_HERE)
#define duet_binary_cross_entropy_logits_grad(x, y)                                                          \
    duet_binary_cross_entropy_logits_grad_at(DUET(x), DUET(y), DUET_HERE)
#define duet_cross_entropy(x, y)             duet_cross_entropy_at(DUET(x), DUET(y), DUET_HERE)
#define duet_cross_entropy_grad(x, y)        duet_cross_entropy_grad_at(DUET(x), DUET(y), DUET_HERE)
#define duet_cross_entropy_logits(x, y)      duet_cross_entropy_logits_at(DUET(x), DUET(y), DUET_HERE)
#define duet_cross_entropy_logits_grad(x, y) duet_cross_entropy_logits_grad_at(DUET(x), DUET(y), DUET_HERE)
#define duet_bias_batch_sum(x)               duet_bias_batch_sum_at(DUET(x), DUET_HERE)
#define duet_bias_batch_mean(x)              duet_bias_batch_mean_at(DUET(x), DUET_HERE)
#define duet_bias_batch_var(x)               duet_bias_batch_var_at(DUET(x), DUET_HERE)
#define duet_batch_norm(x, y, z, r)          duet_batch_norm_at(DUET(x), DUET(y), DUET(z), r, DUET_HERE)
#define duet_batch_norm_grad(x, y, z, r)     duet_batch_norm_grad_at(DUET(x), DUET(y), DUET(z), r, DUET_HERE)
/* duet_layer_norm(x, scale, shift, r), or with axes behind: duet_layer_norm(x, scale, shift, r, 1, 2). */
#define DUET_THIRTEENTH(x, y, z, r, a, b, c, d, e, f, g, h, which, ...) which
#define DUET_LAST_NORM(x, y, z, r)                                      duet_layer_norm_at(DUET(x), DUET(y), DUET(z), r, DUET_HERE)
#define duet_layer_norm_axes(x, y, z, r, ...)                                                                \
    duet_layer_norm_axes_at(DUET(x), DUET(y), DUET(z), r, DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_layer_norm(...)                                                                                 \
    DUET_THIRTEENTH(__VA_ARGS__, duet_layer_norm_axes, duet_layer_norm_axes, duet_layer_norm_axes,           \
                    duet_layer_norm_axes, duet_layer_norm_axes, duet_layer_norm_axes, duet_layer_norm_axes,  \
                    duet_layer_norm_axes, DUET_LAST_NORM, 0, 0, 0)                                           \
    (__VA_ARGS__)
#define DUET_TWELFTH(x, y, r, a, b, c, d, e, f, g, h, which, ...) which
#define DUET_LAST_RMS_NORM(x, y, r)                               duet_rms_norm_at(DUET(x), DUET(y), r, DUET_HERE)
#define duet_rms_norm_axes(x, y, r, ...)                                                                     \
    duet_rms_norm_axes_at(DUET(x), DUET(y), r, DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_rms_norm(...)                                                                                   \
    DUET_TWELFTH(__VA_ARGS__, duet_rms_norm_axes, duet_rms_norm_axes, duet_rms_norm_axes,                    \
                 duet_rms_norm_axes, duet_rms_norm_axes, duet_rms_norm_axes, duet_rms_norm_axes,             \
                 duet_rms_norm_axes, DUET_LAST_RMS_NORM, 0, 0)                                               \
    (__VA_ARGS__)
#define duet_group_norm(x, y, z, groups, r)                                                                  \
    duet_group_norm_at(DUET(x), DUET(y), DUET(z), groups, r, DUET_HERE)
#define duet_nll_loss(...) DUET_WITH_OPTIONS_2(duet_nll_loss_at, duet_class_loss, __VA_ARGS__)
#define duet_cross_entropy_loss(...)                                                                         \
    DUET_WITH_OPTIONS_2(duet_cross_entropy_loss_at, duet_class_loss, __VA_ARGS__)
#define duet_layer_norm_grad(x, y, z, r) duet_layer_norm_grad_at(DUET(x), DUET(y), DUET(z), r, DUET_HERE)
#define duet_instance_norm(x, y, z, r)   duet_instance_norm_at(DUET(x), DUET(y), DUET(z), r, DUET_HERE)
#define duet_instance_norm_grad(x, y, z, r)                                                                  \
    duet_instance_norm_grad_at(DUET(x), DUET(y), DUET(z), r, DUET_HERE)
#define duet_batch_norm_scale_grad(x, y, r) duet_batch_norm_scale_grad_at(DUET(x), DUET(y), r, DUET_HERE)
#define duet_layer_norm_scale_grad(x, y, r) duet_layer_norm_scale_grad_at(DUET(x), DUET(y), r, DUET_HERE)
#define duet_normalize_flat(x)              duet_normalize_flat_at(DUET(x), DUET_HERE)
#define duet_normalize_sub(x)               duet_normalize_sub_at(DUET(x), DUET_HERE)
#define duet_one_if_max(x)                  duet_one_if_max_at(DUET(x), DUET_HERE)
#define duet_one_if_max_sub(x)              duet_one_if_max_sub_at(DUET(x), DUET_HERE)
#define duet_ranged_noise(x, y, r)          duet_ranged_noise_at(DUET(x), DUET(y), r, DUET_HERE)
#define duet_dropout(x, y)                  duet_dropout_at(DUET(x), DUET(y), DUET_HERE)
#define duet_dropout_inverted(x, y, r)      duet_dropout_inverted_at(DUET(x), DUET(y), r, DUET_HERE)

#define duet_kron(x, y) duet_kron_at(DUET(x), DUET(y), DUET_HERE)
/* duet_einsum(x, indices), duet_einsum(x, y, indices), and so on up to 8 operands. */
#define DUET_EINSUM_1(x, s)                duet_einsum_list_at(DUET_EXPRS(x), s, DUET_HERE)
#define DUET_EINSUM_2(x, y, s)             duet_einsum_at(DUET(x), DUET(y), s, DUET_HERE)
#define DUET_EINSUM_3(a, b, c, s)          duet_einsum_list_at(DUET_EXPRS(a, b, c), s, DUET_HERE)
#define DUET_EINSUM_4(a, b, c, d, s)       duet_einsum_list_at(DUET_EXPRS(a, b, c, d), s, DUET_HERE)
#define DUET_EINSUM_5(a, b, c, d, e, s)    duet_einsum_list_at(DUET_EXPRS(a, b, c, d, e), s, DUET_HERE)
#define DUET_EINSUM_6(a, b, c, d, e, f, s) duet_einsum_list_at(DUET_EXPRS(a, b, c, d, e, f), s, DUET_HERE)
#define DUET_EINSUM_7(a, b, c, d, e, f, g, s)                                                                \
    duet_einsum_list_at(DUET_EXPRS(a, b, c, d, e, f, g), s, DUET_HERE)
#define DUET_EINSUM_8(a, b, c, d, e, f, g, h, s)                                                             \
    duet_einsum_list_at(DUET_EXPRS(a, b, c, d, e, f, g, h), s, DUET_HERE)
#define duet_einsum(...)                                                                                     \
    DUET_NINTH(__VA_ARGS__, DUET_EINSUM_8, DUET_EINSUM_7, DUET_EINSUM_6, DUET_EINSUM_5, DUET_EINSUM_4,       \
               DUET_EINSUM_3, DUET_EINSUM_2, DUET_EINSUM_1, 0, 0)                                            \
    (__VA_ARGS__)
#define duet_einsum_list(count, x, indices) duet_einsum_list_at(count, x, indices, DUET_HERE)
#define duet_outer(x, y)                    duet_outer_at(DUET(x), DUET(y), DUET_HERE)
#define duet_vdot(x, y)                     duet_vdot_at(DUET(x), DUET(y), DUET_HERE)
/* duet_cross(x, y), or duet_cross(x, y, axis). */
#define DUET_FOURTH(x, y, axis, which, ...) which
#define DUET_CROSS_LAST(x, y)               duet_cross_at(DUET(x), DUET(y), DUET_HERE)
#define DUET_CROSS_AXIS(x, y, axis)         duet_cross_axis_at(DUET(x), DUET(y), axis, DUET_HERE)
#define duet_cross(...)                     DUET_FOURTH(__VA_ARGS__, DUET_CROSS_AXIS, DUET_CROSS_LAST, 0)(__VA_ARGS__)
#define duet_cross_axis(x, y, axis)         duet_cross_axis_at(DUET(x), DUET(y), axis, DUET_HERE)
#define duet_vecdot(x, y, axis)             duet_vecdot_at(DUET(x), DUET(y), axis, DUET_HERE)

#define duet_tril(x, k)             duet_tril_at(DUET(x), k, DUET_HERE)
#define duet_triu(x, k)             duet_triu_at(DUET(x), k, DUET_HERE)
#define duet_diag(x, k)             duet_diag_at(DUET(x), k, DUET_HERE)
#define duet_meshgrid(x, axis, ...) duet_meshgrid_at(DUET(x), axis, DUET_SIZES(__VA_ARGS__), DUET_HERE)
#define duet_diff(x, n, axis)       duet_diff_at(DUET(x), n, axis, DUET_HERE)

/* As the other reductions, with a number behind the operand: duet_quantile(x, 0.25), or
 * duet_quantile(x, 0.25, 0, 2). */
#define DUET_REDUCE_N(name, ...)                                                                             \
    DUET_TENTH(__VA_ARGS__, DUET_OVER_N, DUET_OVER_N, DUET_OVER_N, DUET_OVER_N, DUET_OVER_N, DUET_OVER_N,    \
               DUET_OVER_N, DUET_OVER_N, DUET_OVER_ALL_N, 0, 0)                                              \
    (name, __VA_ARGS__)
#define DUET_OVER_N(name, x, s, ...)          name##_axes_at(DUET(x), s, DUET_AXES(__VA_ARGS__), DUET_HERE)
#define DUET_OVER_ALL_N(name, x, s)           name##_at(DUET(x), s, DUET_HERE)
#define DUET_KEEP_N(name, x, s, ...)          name##_axes_keep_at(DUET(x), s, DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_var_ddof(...)                    DUET_REDUCE_N(duet_var_ddof, __VA_ARGS__)
#define duet_var_ddof_axes(x, s, ...)         DUET_OVER_N(duet_var_ddof, x, s, __VA_ARGS__)
#define duet_var_ddof_axes_keep(x, s, ...)    DUET_KEEP_N(duet_var_ddof, x, s, __VA_ARGS__)
#define duet_std_ddof(...)                    DUET_REDUCE_N(duet_std_ddof, __VA_ARGS__)
#define duet_std_ddof_axes(x, s, ...)         DUET_OVER_N(duet_std_ddof, x, s, __VA_ARGS__)
#define duet_std_ddof_axes_keep(x, s, ...)    DUET_KEEP_N(duet_std_ddof, x, s, __VA_ARGS__)
#define duet_quantile(...)                    DUET_REDUCE_N(duet_quantile, __VA_ARGS__)
#define duet_quantile_axes(x, q, ...)         DUET_OVER_N(duet_quantile, x, q, __VA_ARGS__)
#define duet_quantile_axes_keep(x, q, ...)    DUET_KEEP_N(duet_quantile, x, q, __VA_ARGS__)
#define duet_percentile(...)                  DUET_REDUCE_N(duet_percentile, __VA_ARGS__)
#define duet_percentile_axes(x, q, ...)       DUET_OVER_N(duet_percentile, x, q, __VA_ARGS__)
#define duet_percentile_axes_keep(x, q, ...)  DUET_KEEP_N(duet_percentile, x, q, __VA_ARGS__)
#define duet_vector_norm(...)                 DUET_REDUCE_N(duet_vector_norm, __VA_ARGS__)
#define duet_vector_norm_axes(x, p, ...)      DUET_OVER_N(duet_vector_norm, x, p, __VA_ARGS__)
#define duet_vector_norm_axes_keep(x, p, ...) DUET_KEEP_N(duet_vector_norm, x, p, __VA_ARGS__)
#define duet_median(...)                      DUET_REDUCE(duet_median, __VA_ARGS__)
#define duet_median_axes(x, ...)              duet_median_axes_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_median_axes_keep(x, ...)         duet_median_axes_keep_at(DUET(x), DUET_AXES(__VA_ARGS__), DUET_HERE)
#define duet_cov(x, ddof)                     duet_cov_at(DUET(x), ddof, DUET_HERE)
#define duet_corrcoef(x)                      duet_corrcoef_at(DUET(x), DUET_HERE)
#define duet_searchsorted(x, values, side)    duet_searchsorted_at(DUET(x), DUET(values), side, DUET_HERE)
#define duet_isin(x, values)                  duet_isin_at(DUET(x), DUET(values), DUET_HERE)

#define duet_pinv(a)                     duet_pinv_at(DUET(a), DUET_HERE)
#define duet_matrix_rank(a, rtol)        duet_matrix_rank_at(DUET(a), rtol, DUET_HERE)
#define duet_matrix_norm(x, kind)        duet_matrix_norm_at(DUET(x), kind, DUET_HERE)
#define duet_cond(x, kind)               duet_cond_at(DUET(x), kind, DUET_HERE)
#define duet_matrix_power(x, n)          duet_matrix_power_at(DUET(x), n, DUET_HERE)
#define duet_permutation_matrix(p, type) duet_permutation_matrix_at(DUET(p), type, DUET_HERE)

#define duet_csr_matmul(values, pattern, x, columns, transposed)                                             \
    duet_csr_matmul_at(DUET(values), DUET(pattern), DUET(x), columns, transposed, DUET_HERE)
#define duet_csr_sddmm(a, pattern, b) duet_csr_sddmm_at(DUET(a), DUET(pattern), DUET(b), DUET_HERE)
#define duet_csr_dense(values, pattern, columns, transposed)                                                 \
    duet_csr_dense_at(DUET(values), DUET(pattern), columns, transposed, DUET_HERE)
#define duet_csr_take(x, pattern) duet_csr_take_at(DUET(x), DUET(pattern), DUET_HERE)
#define duet_csr_solve(values, pattern, b, transposed)                                                       \
    duet_csr_solve_at(DUET(values), DUET(pattern), DUET(b), transposed, DUET_HERE)
/* Give options by name: duet_csr_solve_triangular(values, pattern, b, .lower = 1). */
#define duet_csr_solve_triangular(...)                                                                       \
    DUET_WITH_OPTIONS_3(duet_csr_solve_triangular_at, duet_triangle, __VA_ARGS__)

#define duet_sparse_matmul(s, x)            duet_sparse_matmul_at(s, DUET(x), DUET_HERE)
#define duet_sparse_transposed_matmul(s, x) duet_sparse_transposed_matmul_at(s, DUET(x), DUET_HERE)
#define duet_sparse_adjoint_matmul(s, x)    duet_sparse_adjoint_matmul_at(s, DUET(x), DUET_HERE)
#define duet_sparse_sddmm(s, a, b)          duet_sparse_sddmm_at(s, DUET(a), DUET(b), DUET_HERE)
#define duet_sparse_take(s, x)              duet_sparse_take_at(s, DUET(x), DUET_HERE)
#define duet_sparse_sum(s, axis)            duet_sparse_sum_at(s, axis, DUET_HERE)
#define duet_sparse_to_dense(s)             duet_sparse_to_dense_at(s, DUET_HERE)
#define duet_sparse_solve(s, b)             duet_sparse_solve_at(s, DUET(b), DUET_HERE)
#define duet_sparse_solve_triangular(...)   DUET_SPARSE_TRIANGULAR(__VA_ARGS__, )
#define DUET_SPARSE_TRIANGULAR(s, b, ...)                                                                    \
    duet_sparse_solve_triangular_at(s, DUET(b), DUET_OPTION(duet_triangle, __VA_ARGS__), DUET_HERE)

#define duet_inv(x)      duet_inv_at(DUET(x), DUET_HERE)
#define duet_det(x)      duet_det_at(DUET(x), DUET_HERE)
#define duet_logdet(x)   duet_logdet_at(DUET(x), DUET_HERE)
#define duet_cholesky(x) duet_cholesky_at(DUET(x), DUET_HERE)
#define duet_expm(x)     duet_expm_at(DUET(x), DUET_HERE)
#define duet_eigvals(x)  duet_eigvals_at(DUET(x), DUET_HERE)
#define duet_eigvalsh(x) duet_eigvalsh_at(DUET(x), DUET_HERE)
#define duet_svdvals(x)  duet_svdvals_at(DUET(x), DUET_HERE)
#define duet_lstsq(x, y) duet_lstsq_at(DUET(x), DUET(y), DUET_HERE)
/* Give options by name: duet_solve(a, b), duet_solve(a, b, .refine = DUET_REFINE_F32),
 * duet_solve_triangular(l, b, .lower = 1, .unit = 1). */
#define duet_solve(...)            DUET_WITH_OPTIONS_2(duet_solve_at, duet_solver, __VA_ARGS__)
#define duet_solve_triangular(...) DUET_WITH_OPTIONS_2(duet_solve_triangular_at, duet_triangle, __VA_ARGS__)

#define duet_lu(l, u, p, a)           duet_lu_at(l, u, p, a, DUET_HERE)
#define duet_qr(q, r, a)              duet_qr_at(q, r, a, DUET_HERE)
#define duet_svd(u, s, vt, a)         duet_svd_at(u, s, vt, a, DUET_HERE)
#define duet_eigh(w, v, a)            duet_eigh_at(w, v, a, DUET_HERE)
#define duet_qr_complete(q, r, a)     duet_qr_complete_at(q, r, a, DUET_HERE)
#define duet_svd_full(u, s, vt, a)    duet_svd_full_at(u, s, vt, a, DUET_HERE)
#define duet_eig(w, v, a)             duet_eig_at(w, v, a, DUET_HERE)
#define duet_slogdet(sign, logdet, a) duet_slogdet_at(sign, logdet, a, DUET_HERE)

#endif
