/* lower.h - lowering: the values of a graph become passes, passes become jobs, and jobs become the
 * steps that a backend runs. */
#ifndef LOWER_H
#define LOWER_H

#include "backend.h"
#include "graph.h"

/* The operators to fuse (DUET_FUSION). MACHINE: passes become programs of the interpreter. ROWS: only
 * the patterns of fused.def are fused. NONE: nothing is fused. */
enum fusion { FUSION_MACHINE, FUSION_ROWS, FUSION_NONE };

/* A step before memory is assigned: its operands are values. A transposed operand is a view of its
 * operand's value. */
typedef struct job {
    int kernel;
    enum epilogue epilogue;
    int outs, ins, nums;
    int out[STEP_OUTPUTS]; /* values; or copy_to(dest): a copy of in[0] to that destination */
    int in[STEP_INPUTS];
    bool bias[STEP_INPUTS]; /* a vector over columns or channels */
    bool again;             /* it computes values a second time */
    int num[STEP_NUMBERS];  /* indices into graph.numbers */
    attributes attr;
    program *program;
} job;

#define JOB_JOIN (-1) /* no kernel: when all pieces are written, the join out[0] is complete */

static inline int copy_to(int dest) { return -1 - dest; }
static inline int copied_dest(int out) { return -1 - out; } /* negative if `out` is a value */

#define UNSUPPORTED_TEXT 512
#define PASS_VALUES      128 /* the most values of a pass; a program may accept fewer */

typedef struct lowering {
    graph *g;
    const machine *machine;
    enum fusion fusion;
    duet_math_mode math;
    bool is_limited; /* is there a limit on the bytes of temporaries? */
    const dest_info *dest;
    const bool *copied;     /* of each destination, if known: is it written by a copy at the end? */
    const uint8_t *overlap; /* enum overlap of leaf i with destination k at [i * roots + k] */
    job *jobs;
    int count, capacity;

    /* Arrays with an entry for each value. */
    int *job_of;       /* the job that computes it, or -1 */
    int *dest_of;      /* the destination whose root, or a piece of it, it is; or -1 */
    int *pass;         /* the value that leads its pass; a value that is in no program leads itself */
    int *first, *next; /* of a leader: the lowest value of its pass; of a value: the next higher one, or -1 */
    int *members;      /* of a leader: the number of values of its pass */
    int *uses_inside;  /* how often the list under examination uses it; zeros otherwise */
    int *in_set;       /* is it in the set under examination? zeros otherwise */
    int *visited;      /* has the search for dependences reached this pass? zeros otherwise */
    int *stack;        /* the stack of that search */
    int *registers;    /* needed to compute it (Sethi-Ullman number) */

    bool failed; /* out of memory */
    char unsupported_text
        [UNSUPPORTED_TEXT]; /* which machine does not support what, and why; for explain and errors */
    bool impossible;        /* the machine does not support a step that nothing else can replace */
} lowering;

/* fusion.c: which values are computed together. */
void passes_assign(lowering *l);

/* Split a pass that no backend runs. False: it has only one operator. */
bool pass_refine(lowering *l, int leader);

/* The values of a pass that must be stored, in ascending order: roots, and what other passes read. */
int pass_outputs(lowering *l, int leader, int out[PASS_VALUES]);

static inline bool value_is_reduce(const graph *g, int v)
{
    return op_infos[value_at(g, v)->op].kind == KIND_REDUCE;
}
static inline bool in_program(const graph *g, int v) { return value_is_map(g, v) || value_is_reduce(g, v); }

/* The elements that a pass with v loops over, and the axes that v reduces, one bit each. */
shape domain_of(const graph *g, int v);
uint32_t reduced_axes(const graph *g, int v);

/* Would writing the destination element by element overwrite elements of operand x before they are
 * read? bias: x is a vector over columns or channels. */
bool overwrites_operand(const lowering *l, int dest, int x, bool bias);

/* patterns.c */
typedef struct match {
    int in[3], num;
    int vendor, pool; /* with an epilogue: the values whose options the step takes; pool is -1 if absent */
    uint32_t axes;    /* of a layer normalisation: the axes of one row, one bit each */
} match;

/* Is v the result of an operator with this epilogue? in[0], in[2]: its operands; in[1]: the bias. */
bool match_epilogue(const lowering *l, int v, enum epilogue row, match *m);

/* Is v a layer normalisation? in[1], in[2]: gain and bias, operands or numbers, or -1; num: what is
 * added to the variance. */
bool match_rows(const lowering *l, int v, match *m);
duet_status match_prepare(void); /* make the patterns, once */

/* emit_program.c: emit a pass, or only v if alone is set, as one program. False: it exceeds a limit. */
bool program_build(lowering *l, int v, bool alone, job *j);
bool program_copy(lowering *l, int dest, job *j); /* a program that copies a value to a destination */

/* lower.c: make all jobs, in order. Errors: NO_MEMORY, UNSUPPORTED. */
duet_status lower(lowering *l);
duet_status lower_copy(lowering *l,
                       int dest); /* copy a root that was computed elsewhere to its destination */
void lower_free(lowering *l);

/* order.c, overlap.c, recompute.c: order the jobs so that few temporaries live at once; then so that others
 * run while ranks exchange elements; compute values again that need not be kept because of checkpoints.
 * false: no host memory. */
bool jobs_order(lowering *l);
bool jobs_overlap(lowering *l);
bool jobs_use_checkpoints(lowering *l);

/* duplicate.c: let passes compute values for themselves where that is faster. *any: are there such values?
 * The arrays with an entry for each value are then no longer valid. false: no host memory. */
bool duplicate_values(lowering *l, bool *any);

/* fit_memory.c: after lower(), compute values again, so that at most about `limit` bytes of temporaries
 * live at once, or as few as possible. false: no host memory. */
bool jobs_fit(lowering *l, size_t limit);

/* The graph has more values than `before`: the arrays with an entry for each value become longer. */
bool lowering_lengthen(lowering *l, int before);

static inline bool job_reduces(const job *j) { return j->kernel == KERNEL_PROGRAM && j->program->reductions; }
const char *kernel_name(int kernel, enum epilogue epilogue);

/* A slot for elements that begin `bytes` behind those of slot `base`: for the imaginary halves of
 * complex elements, and for views. */
typedef struct derived_slot {
    int base;
    int64_t bytes;
} derived_slot;

/* buffers.c: where each job writes. Slots are the destinations, the leaves, the temporaries, then derived
 * slots, which step_make adds. */
typedef struct memory {
    int *slot;    /* the slot of each value that a job computes */
    int *scratch; /* for each job, the slot + 1 of memory that it needs while it runs; 0: none */
    size_t *temp; /* bytes of each temporary */
    int temps;
    derived_slot *derived; /* at most one for each operand of a job */
    int n_derived;
    bool direct[STATEMENTS]; /* the root is computed in the destination; if not, it is copied at the end */
} memory;
bool memory_assign(const lowering *l, memory *m); /* false: out of memory */
void memory_free(memory *m);

/* The step of a job. m may be NULL, to find out whether a backend runs it. */
void step_make(const lowering *l, const job *j, memory *m, step *s);

/* Does the job read this input element by element as it writes, so that the output may overwrite it? */
bool job_in_place(const lowering *l, const job *j, int input);

#endif
