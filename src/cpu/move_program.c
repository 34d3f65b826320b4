/* move_program.c - programs that only move elements, of sizes that no machine computes in. */
#include "move_program.h"
#include "dtype.h"
#include "threads.h"
#include <string.h>

bool only_moves(const step *s)
{
    const duet_dtype type = s->out[0].at.type;
    if (s->kernel != KERNEL_PROGRAM) return false;
    for (int k = 0; k < s->outs; k++)
        if (s->out[k].at.type != type) return false;
    for (int k = 0; k < s->ins; k++)
        if (s->in[k].at.type != type) return false;
    for (const instruction *i = s->program->code; i < s->program->code + s->program->length; i++)
        if (i->op != OP_STORE && i->op != OP_SAVE && (i->op != OP_LOAD || i->arg[0].kind == FROM_NUMBER))
            return false;
    return true;
}

/* ---- rows ---- */

typedef struct pair16 {
    uint64_t low, high;
} pair16;

typedef void row_function(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n);

#define ROW(type)                                                                                            \
    static void row_##type(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n)    \
    {                                                                                                        \
        type *y = (type *)to;                                                                                \
        const type *x = (const type *)from;                                                                  \
        if (to_stride == 1 && from_stride == 1) memmove(y, x, (size_t)n * sizeof *y);                        \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++) y[i * to_stride] = x[i * from_stride];                           \
    }
ROW(uint8_t)
ROW(uint16_t)
ROW(uint32_t)
ROW(uint64_t)
ROW(pair16)

static row_function *row_of(size_t bytes)
{
    switch (bytes) {
    case 1: return row_uint8_t;
    case 2: return row_uint16_t;
    case 4: return row_uint32_t;
    case 8: return row_uint64_t;
    default: return row_pair16;
    }
}

/* ---- blocks: rows of the last two axes, short enough that a line of memory is met again before it has left the cache ---- */

#define SIDE 64

typedef struct plane {
    char *to;
    const char *from;
    const layout *y, *x;
    size_t bytes;
    row_function *row;
    int64_t rows; /* in all */
} plane;

/* Rows first .. last - 1 of `length` elements, all of one axis `down` apart. */
static void move_rows(const plane *p, char *to, const char *from, int64_t rows, int64_t y_down,
                      int64_t x_down)
{
    const int last = p->y->rank - 1;
    const int64_t length = p->y->size[last], y = p->y->stride[last], x = p->x->stride[last],
                  each = (int64_t)p->bytes;
    const bool along = y == 1 && (x == 1 || x == 0);
    const int64_t height = along ? 1 : SIDE, width = along ? length : SIDE;
    for (int64_t r = 0; r < rows; r += height)
        for (int64_t c = 0; c < length; c += width)
            for (int64_t i = r; i < r + height && i < rows; i++)
                p->row(to + (i * y_down + c * y) * each, y, from + (i * x_down + c * x) * each, x,
                       c + width < length ? width : length - c);
}

/* Rows first .. last - 1 of all there are. */
static void move_part(const plane *p, int64_t first, int64_t last)
{
    const int below = p->y->rank - 2;
    const int64_t height = below < 0 ? 1 : p->y->size[below];
    for (int64_t row = first, some; row < last; row += some) {
        const int64_t at = row % height;
        int64_t y = 0, x = 0, rest = row / height;
        some = height - at < last - row ? height - at : last - row;
        for (int a = below - 1; a >= 0; rest /= p->y->size[a--])
            y += rest % p->y->size[a] * p->y->stride[a], x += rest % p->y->size[a] * p->x->stride[a];
        const int64_t y_down = below < 0 ? 0 : p->y->stride[below],
                      x_down = below < 0 ? 0 : p->x->stride[below];
        move_rows(p, p->to + (y + at * y_down) * (int64_t)p->bytes,
                  p->from + (x + at * x_down) * (int64_t)p->bytes, some, y_down, x_down);
    }
}

static void move_some(const void *work, int t, int threads)
{
    const plane *p = work;
    move_part(p, part_of(p->rows, t, threads), part_of(p->rows, t + 1, threads));
}

static void move(const step *s, const frame *f, int output, int input)
{
    const layout *y = &s->out[output].at;
    const size_t bytes = dtypes[y->type].bytes;
    plane p = {
        address(f, &s->out[output]), address(f, &s->in[input]), y, &s->in[input].at, bytes, row_of(bytes), 0
    };
    const int64_t count = layout_count(y);
    if (count == 0 || p.to == p.from) return; /* an input that is an output lies as it does */
    const int threads = threads_for((double)count * (double)bytes * 2 * SECONDS_PER_BYTE);
    p.rows = count / y->size[y->rank - 1];
    by_threads(p.rows < threads ? 1 : threads, move_some, &p);
}

duet_status run_move(const step *s, const frame *f)
{
    int acc = 0, slot[PROGRAM_SLOTS] = { 0 }; /* inputs that they hold */
    for (const instruction *i = s->program->code; i < s->program->code + s->program->length; i++) {
        if (i->op == OP_STORE) move(s, f, i->arg[0].index, acc);
        else if (i->op == OP_SAVE) slot[i->arg[0].index] = acc;
        else if (i->arg[0].kind == FROM_INPUT) acc = i->arg[0].index;
        else if (i->arg[0].kind == FROM_SLOT) acc = slot[i->arg[0].index];
    }
    return DUET_OK;
}
