/* group_grid_traffic.h - checks the bytes that products on a grid of ranks send, and which products use
 * one. */
#ifndef GROUP_GRID_TRAFFIC_H
#define GROUP_GRID_TRAFFIC_H

#include "grid_policy.h"
#include "group_traffic.h"

/* Bytes that all ranks receive for x y, where x, y and the result are split by rows, in a grid of R x C: the
 * rows of x of the other ranks in the row of the grid; the columns of y that other ranks have; the columns of
 * the result that the others in the row of the grid compute. */
static double bytes_by_rows(double rows, double columns, double m, double k, double n)
{
    const double ranks = rows * columns, x = m * k, y = k * n, result = m * n;
    const double each = (columns - 1) / ranks * x + (ranks - 1) / ranks * y / columns +
                        (columns - 1) / columns * result / ranks;
    return each * ranks * sizeof(float);
}

/* As an operand of which each rank has columns: the same for transposed operands. */
static void traffic_by_rows(duet_group *g, int rows, int columns)
{
    const int64_t size = 4 * duet_group_ranks(g);
    char what[60];
    duet_matrix *x = some(g, 0, size, 2 * size), *y = some(g, 0, 2 * size, 3 * size),
                *z = some(g, 0, size, 3 * size), *xt = some(g, 1, 2 * size, size),
                *yt = some(g, 1, 3 * size, 2 * size), *zt = some(g, 1, 3 * size, size);
    const double bytes = bytes_by_rows(rows, columns, (double)size, 2 * (double)size, 3 * (double)size);
    grid_products()->forced = true;
    grid_products()->rows = rows;
    bytes_before = duet_stats().exchange_bytes;
    snprintf(what, sizeof what, "product on a grid of %d x %d", rows, columns);
    SENDS(what, z, duet_matmul(x, y), bytes);
    SENDS(what, z, duet_matmul(duet_transpose(xt), duet_transpose(yt)), bytes);
    grid_products()->rows = columns;
    SENDS(what, zt, duet_matmul(yt, xt), bytes);
    grid_products()->panel_bytes = 400; /* the panels have the same bytes in all */
    grid_products()->rows = rows;
    SENDS(what, z, duet_matmul(x, y), bytes);
    duet_free(&x, &y, &z, &xt, &yt, &zt);
}

/* Does the explanation of x y name a grid with several rows and columns? */
static bool is_on_grid(duet_matrix *z, duet_matrix *x, duet_matrix *y)
{
    char text[4000] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    CHECK(duet_explain(out, z, duet_matmul(x, y)) == DUET_OK, "%s", duet_error());
    fclose(out);
    return strstr(text, "blocks of a grid of") && !strstr(text, " x 1 ranks");
}

static void check_choice(duet_group *g, int64_t size, bool wanted)
{
    duet_matrix *x = duet_new_split(g, DUET_F32, 0, size, size),
                *y = duet_new_split(g, DUET_F32, 0, size, size),
                *z = duet_new_split(g, DUET_F32, 0, size, size);
    CHECK(is_on_grid(z, x, y) == wanted, "%d ranks, %lld rows: %s grid", duet_group_ranks(g), (long long)size,
          wanted ? "no" : "a");
    duet_free(&x, &y, &z);
}

static void grid_traffic_of(duet_group *g)
{
    const grid_policy before = *grid_products();
    const int ranks = duet_group_ranks(g);
    for (int rows = 2; rows < ranks; rows++)
        if (ranks % rows == 0) {
            traffic_by_rows(g, rows, ranks / rows);
            *grid_products() = before;
        }
    check_choice(g, 64, false);
    if (ranks != 4) check_choice(g, 4096, ranks > 4); /* 4 ranks send as many bytes either way */
}

#endif
