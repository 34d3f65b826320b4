/* mandelbrot.c - draws the Mandelbrot set as text. */
#include <duet/duet.h>

int main(void)
{
    const int h = 24, w = 72, limit = 60;
    duet_matrix *y = duet_linspace(DUET_F64, -1.2, 1.2, h), *x = duet_linspace(DUET_F64, -2.2, 0.8, w);
    duet_matrix *c = duet_eval(duet_complex(x, duet_expand_dims(y, 1)));
    duet_matrix *z = duet_zeros(DUET_C128, h, w), *count = duet_zeros(DUET_I32, h, w);
    duet_matrix *inside = duet_new(DUET_BOOL, h, w);
    int failed = 0;
    for (int step = 0; !failed && step < limit; step++) {
        failed = duet_set_all({ inside, duet_less_equal(duet_abs(z), 2) },
                              { z, duet_where(inside, duet_add(duet_mul(z, z), c), z) }) ||
                 duet_iadd(count, inside);
    }

    failed = failed || duet_print(stdout, "in the set", duet_sum(duet_equal(count, limit)), "mean count",
                                  duet_mean(duet_cast(count, DUET_F64)));
    if (failed) fprintf(stderr, "%s\n", duet_error());
    const int32_t *counts = duet_read_i32(count);
    for (int i = 0; counts && i < h * w; i++)
        printf("%c%s", " .:-=+*#%@"[counts[i] * 9 / limit], i % w == w - 1 ? "\n" : "");
    duet_free(&x, &y, &c, &z, &count, &inside);
    return failed || duet_live(stderr);
}
