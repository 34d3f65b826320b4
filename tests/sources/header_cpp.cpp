/* header_cpp.cpp - the public header in C++: converting constructors and templates in place of macros, and the
 * source lines of errors and matrices. */
#include <complex>
#include <cstdio>
#include <cstring>
#include <duet/duet.h>
#include <string>
#include <type_traits>

static_assert(std::is_trivially_copyable<duet_expr>::value && sizeof(duet_expr) == 8,
              "a handle stays a handle");
static_assert(std::is_trivially_default_constructible<duet_expr>::value, "and trivial");

static bool first_is(const duet_matrix *m, float want)
{
    const float *p = static_cast<const float *>(duet_read(m));
    return p && *p == want;
}

/* Is the source line of the last error `line`? */
static bool failed_at(int line)
{
    const std::string place = std::string(__FILE__) + ":" + std::to_string(line) + ": ";
    return std::strncmp(duet_error(), place.c_str(), place.size()) == 0;
}

/* Lists with a count and a pointer, which are not const, call the functions of C. */
static bool lists()
{
    int64_t size[] = { 3, 1, 2 };
    int axis[] = { 1, 0 };
    enum { TWO = 2 };
    duet_matrix *x = duet_ones(DUET_F32, TWO, short(3)), *y = duet_new(DUET_F32, 3, 1, 2);
    duet_expr list[] = { x, x };
    duet_index_entry index[] = { DUET_ALL };
    bool good = duet_set(y, duet_reshape(x, 3, size)) == DUET_OK && first_is(y, 1);
    good &= duet_set(y, duet_reshape(x, 3, 1, 2)) == DUET_OK;
    const duet_expr made[] = { duet_permute(x, 2, axis),     duet_permute(x, 1, 0),
                               duet_concat(0, 2, list),      duet_concat(0, x, x),
                               duet_stack(0, 2, list),       duet_stack(0, x, duet_mul(x, 2)),
                               duet_tile(x, 3, size),        duet_tile(x, 3, 1, 2),
                               duet_broadcast(y, 3, size),   duet_broadcast(y, 3, 1L, 2u),
                               duet_sum_axes(x, 2, axis),    duet_sum(x, 1, 0),
                               duet_dot_axes(x, x, 2, axis), duet_dot(x, x, 1, 0),
                               duet_index(x, 1, index),      duet_index(x, DUET_ALL) };
    const int count = sizeof made / sizeof *made;
    for (int i = 0; i < count; i += 2) {
        bool same = duet_expr_rank(made[i]) == duet_expr_rank(made[i + 1]);
        for (int a = 0; a < duet_expr_rank(made[i]); a++)
            same &= duet_expr_size(made[i], a) == duet_expr_size(made[i + 1], a);
        if (!same) std::printf("the lists of formulas %d and %d differ\n", i, i + 1);
        good &= same;
    }
    for (const duet_expr e : made) (void)duet_drop(e);
    duet_free(&x);
    duet_free(&y);
    return good;
}

/* The source lines of errors and of matrices. */
static bool lines()
{
    duet_matrix *x = duet_new(DUET_F32, 2), *none = nullptr;
    bool good = !duet_zeros(DUET_F32, -1) && failed_at(__LINE__);
    good &= !duet_ones(DUET_F32, -1) && failed_at(__LINE__);
    good &= !duet_full(DUET_I32, 0.5, 2) && failed_at(__LINE__);
    good &= !duet_from_array(nullptr, DUET_F32, 2) && failed_at(__LINE__);
    good &= duet_set(none, 1) == DUET_BAD_ARGUMENT && failed_at(__LINE__);
    good &= duet_iadd(none, x) == DUET_BAD_ARGUMENT && failed_at(__LINE__);
    good &= duet_set_all({ { x, 1 }, { none, 2 } }) == DUET_BAD_ARGUMENT && failed_at(__LINE__);
    good &= duet_random_normal(none, 1, 0, 1) == DUET_BAD_ARGUMENT && failed_at(__LINE__);
    good &= duet_qr(none, none, x) != DUET_OK && failed_at(__LINE__);
    good &= !duet_read_c64(x) && failed_at(__LINE__);

    const float array[] = { 1, 2 };
    duet_matrix *each[] = { duet_zeros(DUET_F32, 2), duet_ones(DUET_F32, 2), duet_full(DUET_F32, 0.5, 2),
                            duet_from_array(array, DUET_F32, 2), duet_eval(duet_add(x, 1)) };
    std::FILE *out = std::tmpfile();
    char text[4096] = "";
    int named = 0;
    (void)duet_live(out);
    duet_memory_report(nullptr);
    std::rewind(out);
    while (std::fgets(text, sizeof text, out)) named += std::strstr(text, __FILE__ ":") != nullptr;
    std::fclose(out);
    good &= named == 6;
    for (duet_matrix *&m : each) duet_free(&m);
    duet_free(&x);
    return good;
}

static bool complex_elements()
{
    duet_matrix *x = duet_new(DUET_C64, 2), *y = duet_new(DUET_C128, 1);
    std::complex<float> *p = duet_overwrite_c64(x);
    p[0] = { 1, 2 };
    p[1] = { 3, -4 };
    duet_update_c64(x)[1] *= 2;
    bool good = duet_set(y, duet_sum_keep(x, 0)) == DUET_OK;
    const std::complex<double> *r = duet_read_c128(y);
    good &= r && *r == std::complex<double>(7, -6);
    *duet_update_c128(y) += 1;
    good &= *duet_read_c128(y) == std::complex<double>(8, -6);
    *duet_overwrite_c128(y) = 0;
    good &= duet_read_c64(x)[0] == std::complex<float>(1, 2);
    duet_free(&x);
    duet_free(&y);
    return good;
}

int main()
{
    duet_matrix *x = duet_new(DUET_F32, 2, 3), *y = duet_new(DUET_F32, 2, 3), *s = duet_new(DUET_F32);
    float *p = static_cast<float *>(duet_overwrite(x));
    for (int i = 0; p && i < 6; i++) p[i] = 2;
    bool good = duet_set(y, duet_add(duet_mul(3.5f, x), y)) == DUET_OK && first_is(y, 7);
    good &= duet_set(s, duet_sum(duet_mul(x, 2))) == DUET_OK && first_is(s, 24);
    good &= duet_set(s, duet_sum_axes(x, 0, -1)) == DUET_OK && first_is(s, 12);
    good &= duet_set(y, duet_dot_axes_keep(x, x, 0)) == DUET_OK && first_is(y, 8);
    good &= duet_set(s, duet_logsumexp_axes(duet_sub(x, x), 1, 0)) == DUET_OK && first_is(s, 1.7917595f);
    good &= duet_set(y, 1) == DUET_OK && duet_iadd(y, x) == DUET_OK && first_is(y, 3);
    good &= duet_set(y, duet_maximum(x, 5L)) == DUET_OK && first_is(y, 5);
    good &= duet_set(y, duet_mul(x, 0.25L)) == DUET_OK && first_is(y, 0.5f);

    good &= duet_set_all({ { s, duet_sum(x) }, { y, duet_add(x, s) } }) == DUET_OK && first_is(s, 12) &&
            first_is(y, 14);

    double sum = 0;
    int at = -1;
    good &= duet_items({ { duet_sum(x), DUET_F64, &sum }, { duet_argmax(x), DUET_I32, &at } }) == DUET_OK &&
            sum == 12 && at == 0;
    char text[200] = "";
    std::FILE *file = std::tmpfile();
    const duet_matrix *constant = s;
    good &= file && duet_print(file, s) == DUET_OK && duet_print(file, duet_sum(x)) == DUET_OK &&
            duet_print(file, "items", s, constant, duet_iota(DUET_I32, 2), 1, 2u, 3L, 0.5, 0.1f, "end") ==
                DUET_OK &&
            duet_print(file, nullptr) == DUET_BAD_ARGUMENT;
    if (file) {
        std::rewind(file);
        text[std::fread(text, 1, sizeof text - 1, file)] = 0;
        std::fclose(file);
    }
    good &= !std::strcmp(text, "12.0\n12.0\nitems 12.0 12.0 [0 1] 1 2 3 0.5 0.1\nend\n");

    {
        const duet_math_block split(DUET_MATH_SPLIT);
        good &= duet_set_math(DUET_MATH_TF32, y, duet_add(x, 1)) == DUET_OK && first_is(y, 3);
    }

    const duet_pool window = { { 1, 3 }, { 0, 0 }, { 0, 0 } };
    duet_matrix *image = duet_reshaped(x, 1, 1, 2, 3), *pooled = duet_new(DUET_F32, 1, 1, 2, 1);
    const duet_status status = duet_set(pooled, duet_max_pool2d(image, &window));
    good &= status == DUET_OK && first_is(pooled, 2);
    good &= duet_set(y, duet_add(x, pooled)) == DUET_BAD_SHAPE;
    duet_free(&x);
    duet_free(&y, &s, &image, &pooled);
    good &= !y && !pooled;
    const bool more[] = { lists(), lines(), complex_elements(), duet_live(stdout) == 0,
                          duet_arena_limit(size_t(64) << 20) == DUET_OK };
    for (int i = 0; i < 5; i++)
        if (!more[i]) good = false, std::printf("part %d failed: %s\n", i, duet_error());
    return good ? 0 : 1;
}
