/* group_grid_traffic.h - checks the bytes that products on a grid of ranks send, and which products use
 * one. */
#ifndef GROUP_GRID_TRAFFIC_H
#define GROUP_GRID_TRAFFIC_H

#include "grid_policy.h"
#include "group_traffic.h"
#include "ranks.h"

/* Returns the bytes that all ranks receive for x y on a grid, if x, y and the result are split by rows. A
 * rank receives the rows of x from the other ranks in its row of the grid, the columns of y from all other
 * ranks, and the columns of the result from the other ranks in its row. */
static double bytes_by_rows(double rows, double columns, double m, double k, double n)
{
    const double ranks = rows * columns, x = m * k, y = k * n, result = m * n;
    const double each = (columns - 1) / ranks * x + (ranks - 1) / ranks * y / columns +
                        (columns - 1) / columns * result / ranks;
    return each * ranks * sizeof(float);
}

/* Transposed operands that are split by columns must need as many bytes as operands split by rows. */
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

/* What duet_explain prints for the product of square matrices that are split by rows. They have no elements
 * yet, so they may be large. */
static void explain_product(duet_group *g, int64_t size, char *text, size_t bytes)
{
    FILE *out = fmemopen(text, bytes, "w");
    duet_matrix *x = duet_new_split(g, DUET_F32, 0, size, size),
                *y = duet_new_split(g, DUET_F32, 0, size, size),
                *z = duet_new_split(g, DUET_F32, 0, size, size);
    CHECK(duet_explain(out, z, duet_matmul(x, y)) == DUET_OK, "%s", duet_error());
    fclose(out);
    duet_free(&x, &y, &z);
}

/* The rows and columns of the grid; 0: there is none. */
static void grid_of_product(duet_group *g, int64_t size, int *rows, int *columns)
{
    char text[8000] = "";
    explain_product(g, size, text, sizeof text);
    const char *grid = strstr(text, "grid of ");
    *rows = *columns = 0;
    if (grid) CHECK(sscanf(grid, "grid of %d x %d", rows, columns) == 2, "%s", grid);
    if (*columns == 1) *rows = *columns = 0;
}

static void check_choice(duet_group *g, int64_t size, int rows, int columns)
{
    int r, c;
    grid_of_product(g, size, &r, &c);
    CHECK(r == rows && c == columns, "%d ranks, %lld rows: a grid of %d x %d, not %d x %d",
          duet_group_ranks(g), (long long)size, r, c, rows, columns);
}

/* Between machines, blocks are sent to each rank, and whole operands once to each machine. */
static void check_machines(duet_group *g)
{
    const int before = g->on_machine;
    g->on_machine = 4;
    check_choice(g, 4096, 2, 4); /* a row of the grid is on one machine */
    g->on_machine = before;
}

/* Two panels of the operands are in memory at a time, and up to three parts of the result: the sum, and
 * copies of strided operands. */
static void check_memory(duet_group *g, int rows, int panels)
{
    const int64_t size = 24576;
    const double bytes = 4 * (double)size * (double)size, columns = duet_group_ranks(g) / rows,
                 gathered = columns > 1 ? bytes / rows + bytes / columns : bytes, rounding = 1e6,
                 most = 2 * gathered / panels + 3 * bytes / duet_group_ranks(g) + rounding;
    char text[30000] = "";
    double temporaries = 0;
    grid_products()->rows = rows;
    grid_products()->panel_bytes = gathered / (panels - 0.5);
    grid_products()->forced = columns > 1;
    explain_product(g, size, text, sizeof text);
    const char *at = strstr(text, " bytes of matrices, ");
    if (CHECK(at && sscanf(at, " bytes of matrices, %lf", &temporaries) == 1, "%s", text))
        CHECK(temporaries <= most, "%d x %g ranks: %.0f bytes of temporaries, not %.0f", rows, columns,
              temporaries, most);
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
    for (int rows = 2; rows <= ranks; rows++)
        if (ranks % rows == 0) {
            check_memory(g, rows, rows == ranks && ranks < 8 ? ranks : 8);
            *grid_products() = before;
        }
    check_choice(g, 64, 0, 0);
    if (ranks < 4) check_choice(g, 4096, 0, 0);
    /* 6 GPUs of one machine gather a small operand at once: that has fewer messages than a grid. */
    if (ranks == 6) check_choice(g, g->place == DUET_GPU ? 16384 : 4096, 3, 2);
    if (ranks == 6 && g->place == DUET_GPU) check_choice(g, 4096, 0, 0);
    if (ranks == 8) check_choice(g, 4096, 4, 2);
    if (ranks == 8 && g->place == DUET_GPU) check_machines(g);
}

#endif
