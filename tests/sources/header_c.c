/* header_c.c - the public header in C: a formula of nested macros expands to a small text, and
 * everything links. */
#include <duet/duet.h>

int main(void)
{
    duet_matrix *x = duet_new(DUET_F32, 3), *scalar = duet_new(DUET_F64), *y = duet_new(DUET_F32, 3);
    float *p = duet_overwrite(x);
    for (int i = 0; p && i < 3; i++) p[i] = (float)i;
    const char c = 2;
    const unsigned u = 1;
    const duet_matrix *view = x;
    duet_status s = duet_set(y, duet_add(duet_mul(c, view), duet_sub(3LL, u)));
    const float *r = duet_read(y);
    int bad = s != DUET_OK || !r || r[2] != 6;
    s = (duet_set)(scalar, (duet_add)(duet_of_number(1.5), duet_of_integer(2)));
    const double *q = duet_read(scalar);
    bad |= s != DUET_OK || !q || *q != 3.5;
    DUET_ON(DUET_CPU) bad |= duet_iadd(y, 1) != DUET_OK;
    DUET_MATH(DUET_MATH_TF32)
    bad |= duet_set_math(DUET_MATH_SPLIT, scalar, duet_matmul(scalar, 2)) == DUET_OK;
    DUET_MATH(DUET_MATH_BF16) bad |= duet_isub(y, 1) != DUET_OK;
    duet_free(&x, &y, &scalar);
    return bad;
}
