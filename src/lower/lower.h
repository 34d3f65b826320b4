/* lower.h - from values to passes, from passes to jobs, from jobs to steps. Private to src/plan. */
#ifndef LOWER_H
#define LOWER_H

#include "backend.h"
#include "graph.h"

enum fusion { FUSION_MACHINE, FUSION_ROWS, FUSION_NONE }; /* DUET_FUSION */

/* One step to be, in terms of values. in[]: values as the formula has them; a transposed one is a view of its operand. */
typedef struct job {
    int kernel;
    enum epilogue epilogue;
    int outs, ins, nums;
    int out[STEP_OUTPUTS]; /* values; or copy_to(dest): a copy of in[0] to where the dest's value goes */
    int in[STEP_INPUTS];
    bool bias[STEP_INPUTS]; /* a vector over columns or channels */
    int num[STEP_NUMBERS];  /* of graph.numbers */
    attributes attr;
    program *program;
} job;

#define JOB_JOIN (-1) /* a kernel that is none: nothing is left to do, out[0] is there */

static inline int copy_to(int dest) { return -1 - dest; }
static inline int copied_dest(int out) { return -1 - out; } /* negative of what is a value */

#define REFUSALS    512
#define PASS_VALUES 128 /* so many values are thought of as one pass; a program may then take fewer */

typedef struct lowering {
    graph *g;
    const machine *machine;
    enum fusion fusion;
    duet_math_mode math;
    const dest_info *dest;
    const uint8_t *overlap; /* of leaf i with the destination of dest k, [i * roots + k]: enum overlap */
    job *jobs;
    int count, room;
    int *job_of;  /* the job that computes a value, or -1 */
    int *dest_of; /* the dest whose value, or half of it, it is, or -1 */
    int *
        pass; /* the value that leads the pass to which a value belongs; a value that is in no program leads itself */
    int *first, *next,
        *members; /* of a leader: its pass's lowest value, how many; of a value: the next higher one, or -1 */
    int *inner;   /* zeros; while a pass is looked at, marks on values */
    int *stack;   /* room for as many values as there are */
    int *
        need; /* how many values wait at once while a value is computed: the operand that needs most goes first */
    bool failed;            /* out of memory */
    char refused[REFUSALS]; /* who refused what and why, for explain and errors */
    bool impossible;        /* a step that nothing else can replace was refused */
} lowering;

/* fusion.c: which values are computed together. */
void passes_assign(lowering *l);
bool pass_refine(lowering *l,
                 int leader); /* makes more passes of one that no machine runs; false: it is one operator */

/* What must stand in memory of a pass, in ascending order: its dests, and what others read. */
int pass_outputs(const lowering *l, int leader, int out[PASS_VALUES]);

static inline bool value_is_reduce(const graph *g, int v)
{
    return op_infos[value_at(g, v)->op].kind == KIND_REDUCE;
}
static inline bool in_program(const graph *g, int v) { return value_is_map(g, v) || value_is_reduce(g, v); }

/* Over what a pass with v goes, and which axes v reduces, by bits. */
shape domain_of(const graph *g, int v);
uint32_t reduced_axes(const graph *g, int v);

/* Would writing the destination of a dest element by element spoil operand x before it is read? */
bool spoils(const lowering *l, int dest, int x, bool bias);

/* patterns.c: the row of fused.def that computes value v; false: none. whole: one that covers the pass, its holes finished values. */
typedef struct match {
    int row, in[3], num[2], ins, nums;
    int vendor,
        pool;      /* of a finished step: the values whose options it takes. pool: -1 where there is none */
    uint32_t axes; /* of a step by rows: those of a row, by bits */
} match;
bool match_row(const lowering *l, int v, bool whole, match *m);
bool match_epilogue(const lowering *l, int v, enum epilogue row,
                    match *m); /* is v what that row makes? in: factors 0 and 2, bias 1 */
/* Is v made by a step by rows? in[1], in[2]: operands or numbers, or -1; num[0]: what is added to the variance. */
bool match_rows(const lowering *l, int v, match *m);
duet_status match_prepare(void); /* makes the patterns, once */
int row_flops(int row);          /* operations an element, of a row of fused.def */
extern const char *const fused_names[];

/* emit_program.c: a pass, or value v alone, as one program; false when it exceeds a limit. And a program that copies to a dest. */
bool program_build(lowering *l, int v, bool alone, job *j);
bool program_copy(lowering *l, int dest, job *j);

/* lower.c: all jobs, in order. Errors: NO_MEMORY, UNSUPPORTED. */
duet_status lower(lowering *l);
duet_status lower_copy(lowering *l, int dest); /* its value, computed elsewhere, to its destination */
void lower_free(lowering *l);

/* A program or a fused row. */
static inline bool is_map_kernel(int kernel) { return kernel >= KERNEL_PROGRAM && kernel < KERNELS; }
static inline bool job_reduces(const job *j) { return j->kernel == KERNEL_PROGRAM && j->program->reductions; }
const char *kernel_name(int kernel, enum epilogue epilogue);

/* The other half, which begins a few bytes behind a slot's first one, has a slot of its own, by the type of the whole: see plan_slots. `all`
 * are destinations, leaves and temporaries. */
static inline int plane_slot(int slot, int all, duet_dtype whole)
{
    return slot + (whole == DUET_C64 ? 1 : 2) * all;
}

/* buffers.c: where each job writes. Slots: the destinations, the leaves, the temporaries. */
typedef struct memory {
    int *slot;    /* of a value that a job computes */
    size_t *temp; /* bytes of each temporary */
    int temps;
    bool direct[STATEMENTS]; /* computed where it goes; else elsewhere, and copied at last */
} memory;
bool memory_assign(const lowering *l, memory *m); /* false: out of memory */
void memory_free(memory *m);

/* The step of a job. m may be NULL, to ask whether the machine refuses. */
void step_make(const lowering *l, const job *j, const memory *m, step *s);

/* Does the job read element by element what it writes, so that a value of the same layout may be its output? */
bool job_in_place(const lowering *l, const job *j, int input);

#endif
