/* pack.c - packs instructions into the form that the kernels of one element type read. */
#include "dtype.h"
#include "interpreter_kernels.h"
#include <string.h>

static uint16_t offset_of(uint8_t row, int vectors)
{
    return (uint16_t)(row >= ROW_NONE ? 0 : row * vectors);
}

/* How a step is written as fma(p, q, t), and the numbers it supplies: s in p and r in t, where
 * these are not operands of the step. A row is x if p is a row, otherwise y. */
enum own { OWN_NONE, OWN_S, OWN_R };
typedef struct linear {
    int form;
    enum own own;
    double s, r;
} linear;

static const linear linears[STEPS] = {
    [STEP_LOAD] = { LINEAR_Q_IS_Y, OWN_NONE, 1, -0.0 },
    [STEP_ADD] = { LINEAR_Q_IS_Y | LINEAR_T_IS_A, OWN_NONE, 1, 0 },
    [STEP_SUB] = { LINEAR_Q_IS_Y | LINEAR_T_IS_A, OWN_NONE, -1, 0 },
    [STEP_RSUB] = { LINEAR_T_IS_Y, OWN_NONE, -1, 0 },
    [STEP_MUL] = { LINEAR_P_IS_X, OWN_NONE, 0, -0.0 },
    [STEP_AXPY] = { LINEAR_Q_IS_Y | LINEAR_T_IS_A, OWN_S, 0, 0 },
    [STEP_SCALE] = { LINEAR_T_IS_Y, OWN_S, 0, 0 },
    [STEP_HORNER] = { LINEAR_P_IS_X, OWN_R, 0, 0 },
    [STEP_ADDS] = { 0, OWN_R, 1, 0 },
    [STEP_MULS] = { 0, OWN_S, 0, -0.0 },
    [STEP_RSUBS] = { 0, OWN_R, -1, 0 },
};

static uint64_t bits_of(double x, duet_dtype type)
{
    uint64_t b = 0;
    float narrow = (float)x;
    if (dtype_is_integer(type)) b = (uint64_t)(int64_t)x;
    else if (type == DUET_F64) memcpy(&b, &x, sizeof x);
    else memcpy(&b, &narrow, sizeof narrow);
    return b;
}

static interp_instruction linear_of(int which, uint8_t row, uint64_t number, duet_dtype type)
{
    const linear *l = &linears[which];
    interp_instruction i = { .code = (uint16_t)(CODE_LINEAR + l->form), .x = ROW_NONE, .y = ROW_NONE };
    *(l->form & LINEAR_P_IS_X ? &i.x : &i.y) = row;
    i.s = l->own == OWN_S ? number : bits_of(l->s, type);
    i.r = l->own == OWN_R ? number : bits_of(l->r, type);
    return i;
}

static void put(void *code, int at, const interp_instruction *c, duet_dtype type, int row)
{
    const uint32_t rows = offset_of(c->x, row) | (uint32_t)offset_of(c->y, row) << 16;
    const uint32_t numbers =
        (c->x == ROW_NUMBER ? INTERP_X_NUMBER : 0) | (c->y == ROW_NUMBER ? INTERP_Y_NUMBER : 0);
    const uint32_t saves = c->saves ? INTERP_SAVES : 0;
    const uint32_t what = c->code | numbers | saves | (uint32_t)c->to << 16 | (uint32_t)c->reduction << 24;
    if (type != DUET_F32 && type != DUET_I32)
        ((interp_code_f64 *)code)[at] = (interp_code_f64){ what, rows, c->s, c->r };
    else ((interp_code_f32 *)code)[at] = (interp_code_f32){ what, rows, (uint32_t)c->s, (uint32_t)c->r };
}

/* Splits a pair into one or two linear steps, and a product plus a row into one. Returns the number
 * of steps. */
static int take_apart(interp_instruction *to, const interp_instruction *c, duet_dtype type)
{
    to[0] = *c;
    if (c->code == CODE_MULADD) to[0].code = CODE_LINEAR + (LINEAR_P_IS_X | LINEAR_T_IS_Y);
    if (c->code == CODE_ADDMUL) to[0].code = CODE_LINEAR + (LINEAR_P_IS_X | LINEAR_Q_IS_Y | LINEAR_T_IS_A);
    if (c->code >= CODE_LOADS) return 1;
    const int count = 1 + (c->code % STEPS != STEP_NONE);
    to[0] = linear_of(c->code / STEPS, c->x, c->s, type);
    if (count > 1) to[1] = linear_of(c->code % STEPS, c->y, c->r, type);
    to[count - 1].saves = c->saves;
    to[count - 1].to = c->to;
    return count;
}

static bool is_linear(const interp_instruction *c) { return c->code >= CODE_LINEAR && c->code < CODE_ROWS; }

/* Stores in each linear step how many linear steps follow, up to one that saves. */
static void count_runs(interp_instruction *code, int n)
{
    for (int k = n, run = 0; k-- > 0;) {
        if (!is_linear(&code[k])) run = 0;
        else run = code[k].saves ? 1 : run + 1;
        if (run) code[k].reduction = (uint8_t)run;
    }
}

int interp_pack(void *code, const interp_program *p, duet_dtype type, int row, bool apart)
{
    interp_instruction steps[INTERP_LENGTH];
    int n = 0;
    for (const interp_instruction *c = p->code; c < p->code + p->length; c++)
        if (apart) n += take_apart(steps + n, c, type);
        else steps[n++] = *c;
    count_runs(steps, n);
    for (int k = 0; k < n; k++) put(code, k, &steps[k], type, row);
    return n;
}
