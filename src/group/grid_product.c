/* grid_product.c - products of large matrices on a grid of ranks, as in SUMMA (R. van de Geijn and J. Watts,
 * SUMMA: scalable universal matrix multiplication algorithm, 1997).
 *
 * The ranks form a grid of R rows and C columns. The rank in row r and column c gathers block r of the rows
 * of x, and block c of the columns of y, and computes block (r, c) of the result. The blocks then move, so
 * that the result is split along one axis. If x, y and the result are split by rows over p ranks, a rank
 * receives about (C - 1)/p of x, 1/C of y and 1/p of the result. Without the grid it receives all of y.
 *
 * The whole contraction is one product, unless the gathered blocks would be too large. Then they are gathered
 * in panels of the contracted axis, and the products of the panels are added. A grid with one column is used
 * with panels only: each rank then receives all of y. */
#include "grid_product.h"
#include "build.h"
#include "dtype.h"
#include "operator_again.h"
#include "status.h"

static grid_policy policy = { false, 0, 0x1p31, 4e6 };

grid_policy *grid_products(void) { return &policy; }

/* ---- the choice of a grid ---- */

typedef struct grid {
    int rows, columns;
    bool down;                        /* consecutive ranks are in one column; else in one row */
    distribution left, right;         /* what each rank gathers of x and y */
    distribution block, at;           /* the result, before and after it moves */
    int64_t *row_bounds, *col_bounds; /* of the blocks */
    int panels;
    double moving, computing; /* seconds */
} grid;

/* `parts` parts of an axis, each for the ranks of a row or column of the grid. */
static distribution along_grid(int axis, int64_t *bounds, int stride, int parts, int ranks)
{
    if (parts == 1) return replicated();
    if (parts == ranks) return (distribution){ axis, bounds };
    return (distribution){ axis, bounds, stride, parts };
}

/* Bounds of the blocks of an axis. If the axis is split, and consecutive ranks have the same block, then the
 * block consists of their parts. */
static void find_bounds(int64_t *bounds, int parts, int64_t n, const distribution *like, bool consecutive,
                        int ranks)
{
    for (int k = 0; k <= parts; k++)
        bounds[k] = like && consecutive ? like->bounds[k * (ranks / parts)] : part_first(n, parts, k);
}

/* How axis a of the result should be split; NULL: unknown. */
static const distribution *result_cut(const planner *p, uint32_t i, int a)
{
    const distribution *own = operand_at(p, i, a);
    if (own->axis == a) return own;
    const spread *s = &p->of[i];
    return s->is_wanted && s->wanted.axis == a ? &s->wanted : NULL;
}

static void place_blocks(const planner *p, uint32_t i, grid *g)
{
    const node *n = &p->nodes[i];
    const int ranks = p->g->ranks, row_step = g->down ? 1 : g->columns, col_step = g->down ? g->rows : 1;
    find_bounds(g->row_bounds, g->rows, n->size[0], result_cut(p, i, 0), !g->down, ranks);
    find_bounds(g->col_bounds, g->columns, n->size[1], result_cut(p, i, 1), g->down, ranks);
    g->left = along_grid(0, g->row_bounds, row_step, g->rows, ranks);
    g->right = along_grid(1, g->col_bounds, col_step, g->columns, ranks);
    g->block = g->left.axis < 0 ? g->right : g->left;
    if (g->left.axis >= 0 && g->right.axis >= 0)
        g->block.second = (struct second_axis){ 1, g->col_bounds, col_step, g->columns };
}

/* Where the result moves: to what the destination needs. If that is unknown, to rows or columns. */
static void place_result(const planner *p, uint32_t i, const distribution even[2], grid *g)
{
    const spread *s = &p->of[i];
    double least = 1e300;
    g->at = s->is_wanted ? s->wanted : g->block;
    if (s->is_wanted || !g->block.parts) return;
    for (int a = 0; a < 2; a++) {
        const distribution *cut = result_cut(p, i, a), *to = cut ? cut : &even[a];
        const double seconds = move_seconds(p, &p->nodes[i], &g->block, to);
        if (seconds < least) {
            least = seconds;
            g->at = *to;
        }
    }
}

/* senders: how many ranks have elements that a rank needs. */
static double seconds_of_move(const planner *p, const node *n, const distribution *from,
                              const distribution *to, int senders, int times)
{
    if (from->axis < 0 || distribution_equal(from, to, p->g->ranks)) return 0;
    return move_seconds(p, n, from, to) + messages_seconds(senders) * times;
}

/* The bytes of the largest part of an operand, if it has to be gathered. */
static double gathered_bytes(const node *n, const distribution *from, const distribution *to, int parts)
{
    return from->axis < 0 || (to->axis >= 0 && !to->parts) ? 0 : node_bytes(n) / parts;
}

/* Intermediate sums of shorter types have more bits than the type, so their panels are not added. */
static bool may_add_panels(const node *n) { return dtypes[n->type].bytes >= 4; }

static int panel_count(const planner *p, uint32_t i, const grid *g, int64_t contracted)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0), *y = operand_node(p, i, 1);
    const double bytes = gathered_bytes(x, operand_at(p, i, 0), &g->left, g->rows) +
                         gathered_bytes(y, operand_at(p, i, 1), &g->right, g->columns),
                 panels = bytes / policy.panel_bytes;
    if (panels <= 1 || !may_add_panels(n) || !may_add_panels(x) || !may_add_panels(y)) return 1;
    return (int)(panels < (double)contracted ? panels + 1 : (double)contracted);
}

static void weigh_grid(const planner *p, uint32_t i, const distribution even[2], grid *g)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0), *y = operand_node(p, i, 1);
    const double rows = (double)((n->size[0] + g->rows - 1) / g->rows),
                 columns = (double)((n->size[1] + g->columns - 1) / g->columns);
    place_blocks(p, i, g);
    place_result(p, i, even, g);
    g->panels = panel_count(p, i, g, x->size[1]);
    g->computing = 2 * rows * columns * (double)x->size[1] / rank_flops(p);
    g->moving = seconds_of_move(p, x, operand_at(p, i, 0), &g->left, g->columns, g->panels) +
                seconds_of_move(p, y, operand_at(p, i, 1), &g->right, p->g->ranks, g->panels) +
                seconds_of_move(p, n, &g->block, &g->at, g->columns, 1);
}

/* May the grid have this shape? No rank may gather an operand as a whole, since that needs much memory. */
static bool may_have(const planner *p, uint32_t i, int rows, int columns)
{
    const bool gathers_left = rows == 1 && is_split(operand_at(p, i, 0)),
               gathers_right = columns == 1 && is_split(operand_at(p, i, 1));
    return !gathers_left && !gathers_right && (!policy.rows || rows == policy.rows);
}

/* Returns the grid with the least costs; rows is 0: there is none. */
static grid best_grid(const planner *p, uint32_t i, grid of, const distribution even[2])
{
    const int ranks = p->g->ranks;
    grid best = { .moving = 1e300 };
    for (int rows = 1; rows <= ranks; rows++) {
        if (ranks % rows || !may_have(p, i, rows, ranks / rows)) continue;
        for (int down = 0; down < (rows > 1 && rows < ranks ? 2 : 1); down++) {
            of.rows = rows;
            of.columns = ranks / rows;
            of.down = down;
            weigh_grid(p, i, even, &of);
            if (of.moving + of.computing < best.moving + best.computing) best = of;
        }
    }
    if (best.rows) weigh_grid(p, i, even, &best); /* grids share the memory of the bounds */
    return best;
}

static distribution cut_like_matrix(planner *p, int axis, int64_t n)
{
    int64_t *bounds = bounds_new(p);
    for (int r = 0; bounds && r <= p->g->ranks; r++) bounds[r] = matrix_part_first(n, p->g->ranks, r);
    return (distribution){ axis, bounds };
}

static void use_grid(const planner *p, uint32_t i, const grid *g, spread *s)
{
    s->how = GRID;
    s->at = g->at;
    s->grid = (struct product_grid){ g->rows, g->columns, g->panels, g->left, g->right, g->block };
    s->need[0] = g->panels > 1 ? *operand_at(p, i, 0) : g->left;
    s->need[1] = g->panels > 1 ? *operand_at(p, i, 1) : g->right;
}

/* A grid must save about a tenth of the communication time, because all times are estimates. */
#define MARGIN 1.1

bool grid_is_faster(planner *p, uint32_t i, double seconds, spread *s, bool *failed)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0), *y = operand_node(p, i, 1);
    const bool any_split = is_split(operand_at(p, i, 0)) || is_split(operand_at(p, i, 1));
    *failed = false;
    if (x->rank != 2 || y->rank != 2 || !any_split) return false;
    if (!policy.forced && seconds <= messages_seconds(0)) return false;
    const distribution even[2] = { cut_like_matrix(p, 0, n->size[0]), cut_like_matrix(p, 1, n->size[1]) };
    const grid of = { .row_bounds = bounds_new(p), .col_bounds = bounds_new(p) };
    *failed = !even[0].bounds || !even[1].bounds || !of.row_bounds || !of.col_bounds;
    if (*failed) return false;
    const grid best = best_grid(p, i, of, even);
    if (!best.rows || (!policy.forced && !(MARGIN * best.moving + best.computing < seconds))) return false;
    use_grid(p, i, &best, s);
    return true;
}

/* ---- formulas ---- */

bool has_equal_parts(const distribution *d, int axis, int64_t n, int ranks)
{
    if (d->axis != axis) return true;
    for (int r = 0; r <= ranks; r++)
        if (d->bounds[r] * ranks != n * r) return false;
    return true;
}

/* Panels of the contracted axis. The axis has `pieces` pieces of equal length, one on each rank if that is
 * possible, and a panel has a part of each piece. So all ranks send as much of each panel. */
typedef struct panels {
    builder *b;
    uint32_t i;
    int64_t contracted, pieces;
} panels;

static int64_t piece_count(const builder *b, uint32_t i, int64_t n)
{
    const distribution *x = &b->p->of[i].need[0], *y = &b->p->of[i].need[1];
    const int ranks = b->c->ranks;
    if (n % ranks || (x->axis != 1 && y->axis != 0)) return 1;
    return has_equal_parts(x, 1, n, ranks) && has_equal_parts(y, 0, n, ranks) ? ranks : 1;
}

/* The indices from .. upto - 1 of each piece of the axis, which this rank has completely. */
static duet_expr take_pieces(const panels *f, duet_expr e, const shape *own, int axis, int64_t from,
                             int64_t upto)
{
    const char *site = f->b->site;
    if (f->pieces == 1) return build_range(f->b, e, axis, from, upto);
    const int64_t each = own->size[axis] / f->pieces, other = own->size[1 - axis];
    const int64_t apart[2][3] = { { f->pieces, each, other }, { other, f->pieces, each } };
    const int64_t count = f->pieces * (upto - from);
    const int64_t joined[2][2] = { { count, other }, { other, count } };
    e = build_range(f->b, duet_reshape_at(e, 3, apart[axis], site), axis + 1, from, upto);
    return duet_reshape_at(e, 2, joined[axis], site);
}

static int64_t clip(int64_t n, int64_t from, int64_t upto) { return n < from ? from : n > upto ? upto : n; }

/* This rank's indices of a panel, if the contracted axis is split. Sets bounds to the parts of the panel. */
static duet_expr take_split(const panels *f, duet_expr e, const distribution *d, int64_t from, int64_t upto,
                            int64_t *bounds)
{
    const int r = f->b->c->rank;
    for (int k = 0; k <= f->b->c->ranks; k++)
        bounds[k] = f->pieces > 1 ? k * (upto - from) : clip(d->bounds[k], from, upto) - from;
    const int64_t first = f->pieces > 1 ? from : clip(d->bounds[r], from, upto) - d->bounds[r];
    const int64_t count = bounds[r + 1] - bounds[r];
    return count ? build_range(f->b, e, d->axis, first, first + count) : build_range(f->b, e, d->axis, 0, 0);
}

/* The panel from .. upto - 1 of operand k, in the distribution `to`. */
static duet_expr panel_of(const panels *f, int k, duet_expr e, const distribution *to, int64_t from,
                          int64_t upto)
{
    builder *b = f->b;
    const node *x = operand_node(b->p, f->i, k);
    const int axis = 1 - k;
    distribution at = b->p->of[f->i].need[k];
    shape whole = shape_of_node(x), own, start;
    distribution_part(&at, &whole, b->c->rank, &start, &own);
    whole.size[axis] = f->pieces * (upto - from);
    if (at.axis == axis) {
        int64_t *bounds = bounds_new(&b->own);
        if (!bounds) return formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
        e = take_split(f, e, &at, from, upto, bounds);
        at.bounds = bounds;
    } else {
        e = take_pieces(f, e, &own, axis, from, upto);
    }
    return build_moved_array(b, e, (duet_dtype)x->type, &whole, &at, to);
}

/* The sum of the products of all panels. */
static duet_expr sum_of_panels(builder *b, uint32_t i, const duet_expr x[], const int64_t *size)
{
    const node *n = &b->p->nodes[i];
    const spread *s = &b->p->of[i];
    const int64_t contracted = operand_node(b->p, i, 0)->size[1], pieces = piece_count(b, i, contracted),
                  each = contracted / pieces, count = s->grid.panels < each ? s->grid.panels : each;
    const panels f = { b, i, contracted, pieces };
    duet_expr sum = { 0 };
    for (int64_t t = 0; t < count; t++) {
        const int64_t from = part_first(each, (int)count, (int)t),
                      upto = part_first(each, (int)count, (int)t + 1);
        const duet_expr pair[2] = { panel_of(&f, 0, x[0], &s->grid.left, from, upto),
                                    panel_of(&f, 1, x[1], &s->grid.right, from, upto) };
        const duet_expr product = operator_again(n, pair, size);
        sum = t ? duet_add_at(product, sum, b->site) : product;
    }
    return sum;
}

duet_expr build_grid(builder *b, uint32_t i, const duet_expr x[])
{
    const node *n = &b->p->nodes[i];
    const spread *s = &b->p->of[i];
    const shape whole = shape_of_node(n);
    int64_t size[DUET_RANK_MAX];
    part_of_node(b, n, &s->grid.block, size);
    duet_expr e = s->grid.panels > 1 ? sum_of_panels(b, i, x, size) : operator_again(n, x, size);
    if (distribution_equal(&s->grid.block, &s->at, b->c->ranks)) return e;
    const duet_dtype type = build_widened(b, i, &e);
    return build_collective(b, COLLECTIVE_MOVE, e, type, &whole, &s->grid.block, &s->at);
}
