/* interpreter_codes_tmpl.c - interpreter_codes.h for one element type. */
#include "interpreter_codes.h"
#include "scalar_ops.h"

#if defined T_f32
#define OWN DUET_F32
typedef interp_code_f32 code;
#elif defined T_f64
#define OWN DUET_F64
typedef interp_code_f64 code;
#elif defined T_i64
#define OWN DUET_I64
typedef interp_code_f64 code;
#else
#define OWN DUET_U64
typedef interp_code_f64 code;
#endif

/* Integers are stored as bits. */
#ifdef FORMULA_INTEGERS
static double as_double(T x)
{
    double bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static T of_double(double bits)
{
    T x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
#else
static double as_double(T x) { return (double)x; }
static T of_double(double x) { return (T)x; }
#endif

/* The state of one element in the program. */
typedef struct walk {
    const interp_program *m;
    int row;
    bool apart;
    T a;
    outcome *o;
    T memory[INTERP_ROWS * CODES_ROW];
} walk;

static uint32_t code_of(const code *c) { return c->what & INTERP_CODE; }
static uint32_t run_of(const code *c) { return c->what >> 24; }
static uint32_t to_of(const code *c) { return c->what >> 16 & 0xff; }

static T *row_at(walk *w, uint32_t at)
{
    static T nowhere;
    if (at % (uint32_t)w->row == 0 && at / (uint32_t)w->row < w->m->rows) return &w->memory[at];
    w->o->why = "a row that it does not have";
    return &nowhere;
}
static T *row_x(walk *w, const code *c) { return row_at(w, c->rows & 0xffff); }
static T *row_y(walk *w, const code *c) { return row_at(w, c->rows >> 16); }

static void give(walk *w, uint32_t output, T value, T other, int reduction)
{
    if (output >= PROGRAM_OUTPUTS) {
        w->o->why = "an output that does not exist";
        return;
    }
    w->o->out[output] = as_double(value);
    w->o->other[output] = as_double(other);
    w->o->reduction[output] = reduction;
    w->o->times[output]++;
}

/* ---- pairs ---- */

static T step_of(int which, T a, T x, T s)
{
    switch (which) {
    case STEP_LOAD: return x;
    case STEP_ADD: return a + x;
    case STEP_SUB: return a - x;
    case STEP_RSUB: return x - a;
    case STEP_MUL: return a * x;
    case STEP_AXPY: return FMA(s, x, a);
    case STEP_SCALE: return FMA(a, s, x);
    case STEP_HORNER: return FMA(a, x, s);
    case STEP_ADDS: return a + s;
    case STEP_MULS: return a * s;
    case STEP_RSUBS: return s - a;
    default: return a;
    }
}

static void run_pair(walk *w, const code *c)
{
    const int first = (int)code_of(c) / STEPS, second = (int)code_of(c) % STEPS;
    if (first == STEP_NONE) w->o->why = "a pair without a first step";
    w->a = step_of(second, step_of(first, w->a, *row_x(w, c), AS_T(c->s)), *row_y(w, c), AS_T(c->r));
}

/* ---- linear steps ---- */

static bool is_linear(const code *c) { return code_of(c) >= CODE_LINEAR && code_of(c) < CODE_ROWS; }

/* A row in place of a number, whose bits are then all 0, as in a kernel without a branch. */
static T instead(bool row, T x, T number) { return AS_T((row ? AS_BITS(x) : 0) | AS_BITS(number)); }

static T linear(uint32_t form, T a, T x, T y, T s, T r)
{
    const T p = instead(form & LINEAR_P_IS_X, x, s), q = form & LINEAR_Q_IS_Y ? y : a;
    return FMA(p, q, form & LINEAR_T_IS_A ? a : instead(form & LINEAR_T_IS_Y, y, r));
}

/* Rows are read before the first step, and stored after the last step alone. A kernel may stop
 * within a run and continue with the rest. */
static uint32_t run_linears(walk *w, const code *c, uint32_t left)
{
    const uint32_t count = run_of(c);
    T x[INTERP_LENGTH], y[INTERP_LENGTH];
    if (count < 1 || count > left) {
        w->o->why = "a run beyond the end";
        return 1;
    }
    for (uint32_t k = 0; k < count; k++) {
        if (!is_linear(&c[k]) || run_of(&c[k]) != count - k) {
            w->o->why = "a run of other steps";
            return 1;
        }
        codes_seen[w->apart][code_of(&c[k])] = true;
        x[k] = *row_x(w, &c[k]);
        y[k] = *row_y(w, &c[k]);
    }
    if (count < left && is_linear(&c[count]) && !(c[count - 1].what & INTERP_SAVES))
        w->o->why = "a run that ends early";
    for (uint32_t k = 0; k < count; k++)
        w->a = linear(code_of(&c[k]) - CODE_LINEAR, w->a, x[k], y[k], AS_T(c[k].s), AS_T(c[k].r));
    return count;
}

/* ---- rows of ops.def ---- */

#define FN_OF(name, FORMULA, ...)                                                                            \
    static T fn_##name(T x, T y, T z) { return FORMULA; }
#ifdef FORMULA_INTEGERS
#define DUET_ANY1 FN_OF
#define DUET_ANY2 FN_OF
#define DUET_ANY3 FN_OF
#define DUET_INT1 FN_OF
#define DUET_INT2 FN_OF
#else
#define DUET_MAP1 FN_OF
#define DUET_MAP2 FN_OF
#define DUET_MAP3 FN_OF
#endif
#include <duet/ops.def>

typedef T function(T, T, T);
static function *const functions[OPS] = {
#define ENTRY(name, ...) [OP_##name] = fn_##name,
#ifdef FORMULA_INTEGERS
#define DUET_ANY1 ENTRY
#define DUET_ANY2 ENTRY
#define DUET_ANY3 ENTRY
#define DUET_INT1 ENTRY
#define DUET_INT2 ENTRY
#else
#define DUET_MAP1 ENTRY
#define DUET_MAP2 ENTRY
#define DUET_MAP3 ENTRY
#endif
#include <duet/ops.def>
};

#ifdef FORMULA_INTEGERS
/* Clears all but the lowest bits. */
static T wrapped(T x, uint64_t how)
{
    const uint64_t rest = ~(uint64_t)0 >> (how & WRAP_SHIFT), sign = rest ^ rest >> 1;
    if (how & WRAP_BOOL) return x != 0;
    return (T)(how & WRAP_SIGNED && (uint64_t)x & sign ? (uint64_t)x | ~rest : (uint64_t)x & rest);
}
#endif

static void run_row(walk *w, const code *c)
{
    const uint32_t op = (code_of(c) - CODE_ROWS) / 3, place = (code_of(c) - CODE_ROWS) % 3;
    const T x = c->what & INTERP_X_NUMBER ? AS_T(c->s) : *row_x(w, c);
    const T y = c->what & INTERP_Y_NUMBER ? AS_T(c->r) : *row_y(w, c);
    if (op >= OPS || !functions[op]) w->o->why = "a row that is no operator";
    else if (place == 0) w->a = functions[op](w->a, x, y);
    else if (place == 1) w->a = functions[op](x, w->a, y);
    else w->a = functions[op](x, y, w->a);
}

/* ---- programs ---- */

static void run_plain(walk *w, const code *c)
{
    switch (code_of(c)) {
    case CODE_LOADS: w->a = AS_T(c->s); break;
    case CODE_LOAD: w->a = *row_x(w, c); break;
    case CODE_SAVE: *row_x(w, c) = w->a; break;
    case CODE_STORE: give(w, to_of(c), w->a, 0, 0); break;
    case CODE_REDUCE:
        give(w, to_of(c), w->a, c->what & INTERP_X_NUMBER ? AS_T(c->s) : *row_x(w, c), (int)(c->what >> 24));
        break;
    case CODE_MULADD: w->a = FMA(w->a, *row_x(w, c), *row_y(w, c)); break;
    case CODE_ADDMUL: w->a = FMA(*row_x(w, c), *row_y(w, c), w->a); break;
    default: w->o->why = "a code that its kernels do not have"; break;
    }
}

/* Kernels with one vector have linear steps in place of pairs. Returns the number of codes
 * executed. */
static uint32_t run_one(walk *w, const code *c, uint32_t left)
{
    codes_seen[w->apart][code_of(c)] = true;
    if (w->apart && is_linear(c)) return run_linears(w, c, left);
    if (!w->apart && code_of(c) < CODE_LOADS) run_pair(w, c);
#ifdef FORMULA_INTEGERS
    else if (code_of(c) == CODE_WRAP) w->a = wrapped(w->a, c->s);
#endif
    else if (code_of(c) >= CODE_ROWS) run_row(w, c);
    else run_plain(w, c);
    return 1;
}

static void run_all(walk *w, const code *c, uint32_t length)
{
    for (uint32_t k = 0; k < length && !w->o->why;) {
        k += run_one(w, c + k, length - k);
        if (c[k - 1].what & INTERP_SAVES) *row_at(w, to_of(&c[k - 1]) * (uint32_t)w->row) = w->a;
    }
    w->o->left = as_double(w->a);
}

/* Rows that no instruction has written are NaN. */
static void stage(walk *w, int inputs, double (*in)[CODES_ELEMENTS], int element)
{
    memset(w->memory, 0xff, (size_t)(w->m->rows * w->row) * sizeof *w->memory);
    memset(&w->a, 0xff, sizeof w->a);
    for (int k = 0; k < inputs; k++) w->memory[k * w->row] = of_double(in[k][element]);
    if (w->m->first != ROW_NONE) w->a = *row_at(w, w->m->first * (uint32_t)w->row);
}

void FN(codes)(const interp_program *m, int row, bool apart, int inputs, double (*in)[CODES_ELEMENTS],
               outcome *o)
{
    static walk w;
    static code packed[INTERP_LENGTH];
    const int length = interp_pack(packed, m, OWN, row, apart);
    w.m = m;
    w.row = row;
    w.apart = apart;
    for (int e = 0; e < CODES_ELEMENTS; e++) {
        o[e] = (outcome){ .why = length > m->steps ? "more codes than it says" : NULL };
        w.o = &o[e];
        stage(&w, inputs, in, e);
        run_all(&w, packed, (uint32_t)length);
    }
}
