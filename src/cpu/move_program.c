/* move_program.c - runs programs that only copy elements (move_program.h).
 *
 * Elements are copied by size, without conversion. Operands may have any layout. Threads divide the
 * rows. */
#include "move_program.h"
#include "dtype.h"
#include "min_max.h"
#include "threads.h"
#include <string.h>

bool is_move_program(const step *s)
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

typedef struct bits128 {
    uint64_t low, high;
} bits128;

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
ROW(bits128)

static row_function *row_of(size_t bytes)
{
    switch (bytes) {
    case 1: return row_uint8_t;
    case 2: return row_uint16_t;
    case 4: return row_uint32_t;
    case 8: return row_uint64_t;
    default: return row_bits128;
    }
}

/* ---- tiles: short rows, so that a cache line is used again before it is evicted ---- */

#define TILE 64

typedef struct move_work {
    char *to;
    const char *from;
    const layout *y, *x;
    size_t bytes;
    row_function *row;
    int64_t rows; /* number of rows of all outer axes */
} move_work;

/* Copies `rows` rows of one axis, in tiles unless rows are contiguous. */
static void move_rows(const move_work *p, char *to, const char *from, int64_t rows, int64_t y_step,
                      int64_t x_step)
{
    const int last = p->y->rank - 1;
    const int64_t length = p->y->size[last], y = p->y->stride[last], x = p->x->stride[last],
                  size = (int64_t)p->bytes;
    const bool along = y == 1 && (x == 1 || x == 0);
    const int64_t tile_rows = along ? 1 : TILE, tile_columns = along ? length : TILE;
    for (int64_t r = 0; r < rows; r += tile_rows)
        for (int64_t c = 0; c < length; c += tile_columns)
            for (int64_t i = r; i < r + tile_rows && i < rows; i++)
                p->row(to + (i * y_step + c * y) * size, y, from + (i * x_step + c * x) * size, x,
                       smaller(tile_columns, length - c));
}

/* Copies rows first .. last - 1 of all outer axes. */
static void move_row_range(const move_work *p, int64_t first, int64_t last)
{
    const int row_axis = p->y->rank - 2;
    int64_t axis_rows = 1, y_step = 0, x_step = 0;
    if (row_axis >= 0) {
        axis_rows = p->y->size[row_axis];
        y_step = p->y->stride[row_axis];
        x_step = p->x->stride[row_axis];
    }
    for (int64_t row = first, count; row < last; row += count) {
        const int64_t at = row % axis_rows;
        int64_t y = 0, x = 0, outer = row / axis_rows;
        count = smaller(axis_rows - at, last - row);
        for (int a = row_axis - 1; a >= 0; outer /= p->y->size[a--]) {
            y += outer % p->y->size[a] * p->y->stride[a];
            x += outer % p->y->size[a] * p->x->stride[a];
        }
        move_rows(p, p->to + (y + at * y_step) * (int64_t)p->bytes,
                  p->from + (x + at * x_step) * (int64_t)p->bytes, count, y_step, x_step);
    }
}

static void move_part(const void *work, int t, int threads)
{
    const move_work *p = work;
    move_row_range(p, part_of(p->rows, t, threads), part_of(p->rows, t + 1, threads));
}

static void move(const step *s, const frame *f, int output, int input)
{
    const layout *y = &s->out[output].at;
    const size_t bytes = dtypes[y->type].bytes;
    move_work p = {
        address(f, &s->out[output]), address(f, &s->in[input]), y, &s->in[input].at, bytes, row_of(bytes), 0
    };
    const int64_t count = layout_count(y);
    if (count == 0 || p.to == p.from) return; /* the same memory has the same layout */
    const int threads = threads_for((double)count * (double)bytes * 2 * SECONDS_PER_BYTE);
    p.rows = count / y->size[y->rank - 1];
    by_threads(p.rows < threads ? 1 : threads, move_part, &p);
}

duet_status run_move_program(const step *s, const frame *f)
{
    int acc = 0, slot[PROGRAM_SLOTS] = { 0 }; /* the inputs whose values they hold */
    for (const instruction *i = s->program->code; i < s->program->code + s->program->length; i++) {
        if (i->op == OP_STORE) move(s, f, i->arg[0].index, acc);
        else if (i->op == OP_SAVE) slot[i->arg[0].index] = acc;
        else if (i->arg[0].kind == FROM_INPUT) acc = i->arg[0].index;
        else if (i->arg[0].kind == FROM_SLOT) acc = slot[i->arg[0].index];
    }
    return DUET_OK;
}
