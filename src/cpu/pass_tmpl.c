/* pass_tmpl.c - the engine of a pass: blocks, buffers, threads. */
#include "pass.h"
#include "walk.h"

/* How the elements are cut into blocks: `height` rows of `width` columns. All but those at the ends are full. */
typedef struct cut {
    int64_t rows, columns, height, width, down, across; /* down * across blocks */
} cut;

typedef struct block {
    int64_t row, height, column, width;
    walk walk; /* of the first row: its `at` holds for all operands */
} block;

enum manner { IN_PLACE, COPIED, STILL }; /* STILL: the same elements in every block, copied once */

typedef struct work {
    const pass *p;
    cut cut;
    int rank;
    const layout *shape;
    uint8_t in[PROGRAM_INPUTS], out[PROGRAM_OUTPUTS];
    bool buffered;
} work;

void pass_open(pass *p, const step *s, const frame *f)
{
    p->s = s, p->f = f;
    p->loops = p->numbers = p->buffers = 0;
    p->early = 0, p->seconds = 0;
    p->num[0] = p->num[1] = 0;
    for (int k = 0; k < s->nums; k++) p->num[k] = (T)f->num[s->num[k]];
}

/* ---- where things are ---- */

static int64_t offset_of(const block *b, const layout *l)
{
    int64_t offset = b->column * row_stride(l);
    for (int a = 0; a < l->rank - 1; a++) offset += b->walk.at[a] * l->stride[a];
    return offset;
}

/* Copies between a block in L1, dense, and the rows of an operand. */
static void rows_in(T *to, const T *from, const layout *l, const block *b)
{
    walk w = b->walk;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, to += b->width, walk_on(&w, l)) row_in(to, from + w.offset, row_stride(l), b->width);
}

static void rows_out(T *to, const layout *l, const T *from, const block *b)
{
    walk w = b->walk;
    w.offset = offset_of(b, l);
    for (int64_t r = 0; r < b->height; r++, from += b->width, walk_on(&w, l))
        row_out(to + w.offset, from, row_stride(l), b->width);
}

/* Is going down a column of l going through memory, and its rows not? Then a block should be a tile. */
static bool stands(const layout *l)
{
    return l->rank > 1 && l->stride[l->rank - 2] == 1 && row_stride(l) != 1 && row_stride(l) != 0;
}

/* The same for a tile of an operand that stands, whose rows are all of one axis. */
static void tile_in(T *to, const T *from, const layout *l, const block *b)
{
    const T *first = from + offset_of(b, l);
    for (int64_t c = 0; c < b->width; c++)
        for (int64_t r = 0; r < b->height; r++) to[r * b->width + c] = first[c * row_stride(l) + r];
}

static bool in_one_axis(const layout *l, const block *b) { return b->walk.at[l->rank - 2] + b->height <= l->size[l->rank - 2]; }

static void copy_in(T *to, const T *from, const layout *l, const block *b)
{
    if (b->height > 1 && stands(l) && in_one_axis(l, b)) tile_in(to, from, l, b);
    else rows_in(to, from, l, b);
}

/* ---- the cut ---- */

static bool any_stands(const step *s)
{
    for (int k = 0; k < s->outs; k++)
        if (stands(&s->out[k].at)) return true;
    for (int k = 0; k < s->ins; k++)
        if (stands(&s->in[k].at)) return true;
    return false;
}

/* Equal parts of at most `most` of n elements, in whole vectors. */
static int64_t equal_part(int64_t n, int64_t most)
{
    int64_t parts = (n + most - 1) / most, part = (n + parts - 1) / parts;
    return SMALLER((part + 15) / 16 * 16, most);
}

/* One loop without buffers gains nothing from L1: it goes far at a time. */
static cut cut_of(const step *s, int64_t most)
{
    const layout *l = &s->out[0].at;
    cut c = { .columns = row_length(l), .height = 1 };
    c.rows = layout_count(l) / c.columns;
    if (c.rows >= 16 && c.columns >= 16 && any_stands(s)) c.height = 16, c.width = BLOCK / 16;
    else if (c.columns > BLOCK / 2 || c.rows == 1) c.width = equal_part(c.columns, most);
    else c.height = SMALLER(BLOCK / c.columns, c.rows), c.width = c.columns;
    c.down = (c.rows + c.height - 1) / c.height, c.across = (c.columns + c.width - 1) / c.width;
    return c;
}

static block block_at(const work *w, int64_t index)
{
    const cut *c = &w->cut;
    block b = { .row = index / c->across * c->height, .column = index % c->across * c->width };
    b.height = SMALLER(c->height, c->rows - b.row), b.width = SMALLER(c->width, c->columns - b.column);
    b.walk = walk_to(w->shape, b.row);
    return b;
}

static bool repeats(const layout *l, const cut *c)
{
    for (int a = 0; a < l->rank - 1; a++)
        if (l->stride[a] != 0) return false;
    return row_stride(l) == 0 || c->across == 1;
}

static bool in_place(const layout *l, const cut *c)
{
    if (c->height > 1) return c->across == 1 && layout_is_dense(l);
    return row_stride(l) == 1 || row_length(l) == 1;
}

static enum manner manner_of(const layout *l, const cut *c, bool early)
{
    if (early) return COPIED;
    return in_place(l, c) ? IN_PLACE : repeats(l, c) ? STILL : COPIED;
}

static bool lies_in_place(const step *s, const cut *c)
{
    for (int k = 0; k < s->outs; k++)
        if (!in_place(&s->out[k].at, c)) return false;
    for (int k = 0; k < s->ins; k++)
        if (!in_place(&s->in[k].at, c)) return false;
    return true;
}

static work work_of(const pass *p)
{
    const step *s = p->s;
    work w = { .p = p, .cut = cut_of(s, BLOCK), .rank = s->out[0].at.rank, .shape = &s->out[0].at };
    w.buffered = p->loops != 1 || p->numbers || p->early || !lies_in_place(s, &w.cut);
    if (!w.buffered && w.cut.height == 1) w.cut = cut_of(s, 32 * BLOCK);
    for (int k = 0; k < s->ins; k++) w.in[k] = manner_of(&s->in[k].at, &w.cut, p->early >> k & 1);
    for (int k = 0; k < s->outs; k++) w.out[k] = in_place(&s->out[k].at, &w.cut) ? IN_PLACE : COPIED;
    return w;
}

/* ---- one thread's work ---- */

/* The first block of a thread has the width of all if the elements that repeat are more than one, and the most rows. */
static void copy_still(T *to, const T *from, const layout *l, const work *w, const block *b)
{
    if (row_stride(l) == 0) row_in(to, from, 0, w->cut.height * w->cut.width);
    else copy_in(to, from, l, b);
}

static void prepare(const work *w, const block *b, T *value[VALUES], bool first)
{
    const step *s = w->p->s;
    for (int k = 0; k < s->ins; k++) {
        const layout *l = &s->in[k].at;
        T *from = address(w->p->f, &s->in[k]), **v = &value[INPUTS + k];
        if (w->in[k] == IN_PLACE) *v = from + offset_of(b, l);
        else if (w->in[k] == COPIED) copy_in(*v, from, l, b);
        else if (first) copy_still(*v, from, l, w, b);
    }
    for (int k = 0; k < s->outs; k++)
        if (w->out[k] == IN_PLACE) value[OUTPUTS + k] = (T *)address(w->p->f, &s->out[k]) + offset_of(b, &s->out[k].at);
}

static void finish(const work *w, const block *b, T *value[VALUES])
{
    const step *s = w->p->s;
    for (int k = 0; k < s->outs; k++)
        if (w->out[k] != IN_PLACE) rows_out(address(w->p->f, &s->out[k]), &s->out[k].at, value[OUTPUTS + k], b);
}

static void run_blocks(const work *w, int64_t from, int64_t to, T *value[VALUES])
{
    const pass *p = w->p;
    for (int64_t i = from; i < to; i++) {
        const block b = block_at(w, i);
        prepare(w, &b, value, i == from);
        for (const loop *l = p->loop; l < p->loop + p->loops; l++)
            l->run(value[l->to], value[l->from[0]], value[l->from[1]], value[l->from[2]], p->num, b.height * b.width);
        finish(w, &b, value);
    }
}

/* Addresses of all values that are not in place, packed from `room`, and the numbers in theirs. */
static void lay_out(const work *w, T *value[VALUES], T (*room)[BLOCK])
{
    const pass *p = w->p;
    for (int k = 0; k < p->s->ins; k++)
        if (w->in[k] != IN_PLACE) value[INPUTS + k] = *room++;
    for (int k = 0; k < p->s->outs; k++)
        if (w->out[k] != IN_PLACE) value[OUTPUTS + k] = *room++;
    for (int k = 0; k < p->buffers; k++) value[BUFFERS + k] = *room++;
    for (int k = 0; k < p->numbers; k++, room++) {
        value[NUMBERS + k] = *room;
        row_in(*room, &p->num[k], 0, w->cut.height * w->cut.width);
    }
}

__attribute__((noinline)) static void run_buffered(const work *w, int64_t from, int64_t to)
{
    T room[VALUES][2048 / sizeof(T)] __attribute__((aligned(64)));
    T *value[VALUES];
    lay_out(w, value, room);
    run_blocks(w, from, to, value);
}

static void run_part(const work *w, int64_t from, int64_t to)
{
    T *value[VALUES];
    if (w->buffered) run_buffered(w, from, to);
    else run_blocks(w, from, to, value);
}

void pass_run(pass *p)
{
    const int64_t count = layout_count(&p->s->out[0].at);
    if (count == 0 || p->loops == 0) return;
    const work w = work_of(p);
    const int64_t blocks = w.cut.down * w.cut.across;
    const double bytes = (double)sizeof(T) * (p->s->ins + p->s->outs);
    int threads = threads_for((double)count * (p->seconds + bytes * SECONDS_PER_BYTE));
    if (threads > blocks) threads = (int)blocks;
    if (threads <= 1) {
        run_part(&w, 0, blocks);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        int t = omp_get_thread_num(), team = omp_get_num_threads();
        run_part(&w, part_of(blocks, t, team), part_of(blocks, t + 1, team));
    }
}
