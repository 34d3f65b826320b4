/* kmeans.c - clusters points in the plane around three centers. */
#include <duet/duet.h>

int main(void)
{
    const int n = 300, k = 3;
    const duet_expr i = duet_iota(DUET_F64, n), group = duet_remainder(i, k), angle = duet_mul(2.1, i);
    const duet_expr radius = duet_add(0.5, duet_mul(0.4, duet_sin(duet_mul(1.7, i))));
    const duet_expr right = duet_add(duet_mul(3, group), duet_mul(radius, duet_cos(angle)));
    const duet_expr up = duet_add(duet_square(group), duet_mul(radius, duet_sin(angle)));
    duet_matrix *x = duet_eval(duet_stack(1, right, up));

    duet_matrix *center = duet_eval(duet_add(duet_index(x, DUET_RANGE(0, k)), 0.7));
    duet_matrix *distance = duet_new(DUET_F64, n, k), *member = duet_new(DUET_F64, n, k);
    duet_matrix *size = duet_new(DUET_F64, k), *moved = duet_new(DUET_F64, k, 2);
    int step = 0, failed = 0;
    for (double shift = 1; !failed && step < 10 && shift >= 1e-6; step++) {
        const duet_expr apart = duet_sub(duet_expand_dims(x, 1), center);
        failed = duet_set_all({ distance, duet_sum(duet_square(apart), 2) },
                              { member, duet_one_hot(duet_argmin(distance, 1), k, DUET_F64) },
                              { size, duet_sum(member, 0) },
                              { moved, duet_div(duet_matmul(duet_transpose(member), x),
                                                duet_expand_dims(size, 1)) }) ||
                 duet_item(duet_max(duet_abs(duet_sub(moved, center))), &shift) || duet_set(center, moved);
    }

    const duet_expr mean = duet_mean(duet_sqrt(duet_min(distance, 1)));
    failed =
        failed || duet_print(stdout, "steps", step, "sizes", size, "centers", center, "mean distance", mean);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&x, &center, &distance, &member, &size, &moved);
    return failed || step == 10 || duet_live(stderr);
}
