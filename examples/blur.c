/* blur.c - blurs an image with a box filter, and sharpens it. */
#include <duet/duet.h>

int main(void)
{
    const int h = 48, w = 64, size = 5;
    duet_matrix *i = duet_arange(DUET_F64, 0, h, 1), *column = duet_arange(DUET_F64, 0, w, 1);
    const duet_expr row = duet_expand_dims(i, 1);
    const duet_expr waves = duet_mul(duet_sin(duet_div(row, 5)), duet_cos(duet_div(column, 7)));
    const duet_expr disc = duet_less(duet_hypot(duet_sub(row, 20), duet_sub(column, 30)), 10);
    duet_matrix *image = duet_eval(duet_where(disc, 255, duet_fma(100, waves, 128)));

    const duet_expr mean = duet_avg_pool2d(duet_reshape(image, 1, 1, h, w), .window = { size, size },
                                           .stride = { 1, 1 }, .pad = { size / 2, size / 2 });
    duet_matrix *blurred = duet_eval(duet_reshape(mean, h, w));
    duet_matrix *corner = duet_submatrix(blurred, 0, 0, 3, 3), *change = duet_eval(duet_sub(image, blurred));
    const duet_expr sharp = duet_clip(duet_add(image, duet_mul(1.5, change)), 0, 255);

    double before = 0, after = 0, largest = 0;
    int at = 0, white = 0;
    const int failed = duet_item(duet_sum(duet_equal(sharp, 255)), &white) ||
                       duet_item(duet_mean(image), &before) || duet_item(duet_mean(blurred), &after) ||
                       duet_item(duet_max(duet_abs(change)), &largest) ||
                       duet_item(duet_argmax(duet_abs(change)), &at);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    printf("mean before and after %.9g %.9g\nlargest change %.9g\n", before, after, largest);
    printf("where %d %d\ncorner ", at / w, at % w), duet_print(stdout, corner);
    printf("clipped to white %d\n", white);
    duet_free(&i), duet_free(&column), duet_free(&image), duet_free(&blurred);
    duet_free(&corner), duet_free(&change);
    return failed || !(after < before) || duet_live(stderr);
}
