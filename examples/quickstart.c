/* quickstart.c - evaluates two formulas, each on the CPU or the GPU, whichever is faster. */
#include <duet/duet.h>

int main(void)
{
    duet_matrix *A = duet_new(DUET_F32, 2, 3), *x = duet_new(DUET_F32, 3), *y = duet_new(DUET_F32, 2);
    float *a = duet_overwrite(A), *v = duet_overwrite(x); /* host pointers; NULL if out of memory */
    for (int i = 0; a && i < 6; i++) a[i] = i;
    for (int i = 0; v && i < 3; i++) v[i] = 1;

    if (duet_set(x, duet_add(duet_mul(3.3f, x), x)) || /* x = 3.3 x + x, in one pass */
        duet_set(y, duet_matmul(A, x))) {              /* y = A x */
        fprintf(stderr, "%s\n", duet_error());
        return 1;
    }
    const float *r = duet_read(y); /* copies the result to the host if the GPU computed it */
    if (r) printf("%g %g\n", r[0], r[1]);
    duet_free(&A);
    duet_free(&x);
    duet_free(&y);
    return !r;
}
