/* header_cpp.cpp - the public header in C++: converting constructors in place of macros. */
#include <cstdio>
#include <cstring>
#include <duet/duet.h>
#include <type_traits>

static_assert(std::is_trivially_copyable<duet_expr>::value && sizeof(duet_expr) == 8,
              "a handle stays a handle");
static_assert(std::is_trivially_default_constructible<duet_expr>::value, "and trivial");

static bool first_is(const duet_matrix *m, float want)
{
    const float *p = static_cast<const float *>(duet_read(m));
    return p && *p == want;
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
    return good && !y && !pooled && duet_live(NULL) == 0 ? 0 : 1;
}
