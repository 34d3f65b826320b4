/* blur.c - blurs an image with a box filter, and sharpens it. */
#include <duet/duet.h>

int main(void)
{
    const int h = 48, w = 64, size = 5;
    const duet_expr row = duet_expand_dims(duet_iota(DUET_F64, h), 1), column = duet_iota(DUET_F64, w);
    const duet_expr waves = duet_mul(duet_sin(duet_div(row, 5)), duet_cos(duet_div(column, 7)));
    const duet_expr disc = duet_less(duet_hypot(duet_sub(row, 20), duet_sub(column, 30)), 10);
    duet_matrix *image = duet_eval(duet_where(disc, 255, duet_fma(100, waves, 128)));

    const duet_expr mean = duet_avg_pool2d(duet_reshape(image, 1, 1, h, w), .window = { size, size },
                                           .stride = { 1, 1 }, .pad = { size / 2, size / 2 });
    duet_matrix *blurred = duet_eval(duet_reshape(mean, h, w));
    const duet_expr sharp = duet_clip(duet_fma(1.5, duet_sub(image, blurred), image), 0, 255);
    duet_matrix *change = duet_eval(duet_abs(duet_sub(image, blurred)));
    const duet_expr corner = duet_index(blurred, DUET_RANGE(0, 3), DUET_RANGE(0, 3));
    const duet_expr white = duet_sum(duet_equal(sharp, 255));

    int at = 0;
    const int failed =
        duet_item(duet_argmax(change), &at) ||
        duet_print(stdout, "mean before and after", duet_mean(image), duet_mean(blurred), "largest change",
                   duet_max(change), "where", at / w, at % w, "corner", corner, "clipped to white", white);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&image, &blurred, &change);
    return failed || duet_live(stderr);
}
