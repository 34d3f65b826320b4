/* lower.h - from values to jobs, from jobs to steps. Private to src/plan. */
#ifndef LOWER_H
#define LOWER_H

#include "backend.h"
#include "graph.h"

enum fusion { FUSION_MACHINE, FUSION_ROWS, FUSION_NONE }; /* DUET_FUSION */

/* One step to be, in terms of values. in[]: values as the formula has them; a transposed one is a view of its operand. */
typedef struct job {
    int kernel;
    int out; /* a value, or TO_DESTINATION: a copy of in[0] there */
    int ins, nums;
    int in[STEP_INPUTS];
    bool bias[STEP_INPUTS]; /* a vector over columns or channels */
    int num[STEP_NUMBERS];  /* of graph.numbers */
    int32_t attr[STEP_ATTRS];
    program *program;
} job;

enum { TO_DESTINATION = -1 };

#define REFUSALS      512
#define REGION_VALUES 40 /* a program with room for every value to be saved once */

/* What a region has and reads so far. */
typedef struct region_load {
    int values, inputs, numbers;
    int input[PROGRAM_INPUTS], number[PROGRAM_NUMBERS];
} region_load;

typedef struct lowering {
    graph *g;
    const machine *machine;
    enum fusion fusion;
    layout to; /* the destination */
    job *jobs;
    int count, room;
    int *job_of;            /* the job that computes a value, or -1 */
    int *region;            /* the value at whose region a map value belongs */
    region_load *load;      /* of a region's value */
    int *need;              /* how many values wait at once while a value is computed: the operand that needs most goes first */
    bool *cut;              /* a value that must be a region of its own */
    bool failed;            /* out of memory */
    char refused[REFUSALS]; /* who refused what and why, for explain and errors */
    bool impossible;        /* a step that nothing else can replace was refused */
} lowering;

/* region.c: which map values are computed together. */
void regions_assign(lowering *l);

/* match.c: the row of fused.def that computes value v, or -1. whole: it must cover the region and its holes be finished values. */
typedef struct match {
    int row, in[3], num[2], ins, nums;
} match;
bool match_row(const lowering *l, int v, bool whole, match *m);
duet_status match_prepare(void); /* makes the patterns, once */
int row_flops(int row);          /* operations an element, of a row of fused.def */
extern const char *const fused_names[];

/* program.c: the region of value v, or v alone, as one program; false when it exceeds a limit. And a program that copies. */
bool program_build(lowering *l, int v, bool alone, job *j);
bool program_load(lowering *l, int v, int out, job *j);

/* lower.c: all jobs, in order. Errors: NO_MEMORY, UNSUPPORTED. */
duet_status lower(lowering *l);
duet_status lower_copy(lowering *l); /* and the root's copy to the destination */
void lower_free(lowering *l);

/* Element by element: a program or a fused row. */
static inline bool is_map_kernel(int kernel) { return kernel >= KERNEL_PROGRAM; }
const char *kernel_name(int kernel);

/* The layout that a job writes, out of the destination or, when it is written there, the destination's. */
layout job_output(const lowering *l, const job *j, bool direct);

/* How a value is reached where it lies. */
layout value_layout(const graph *g, int v);

/* memory.c: where each job writes. */
enum { SLOT_DESTINATION = 0 }; /* then the leaves, then the temporaries */
typedef struct memory {
    int *slot;    /* of a value that a job computes */
    size_t *temp; /* bytes of each temporary */
    int temps;
    bool copy;       /* the root is computed elsewhere and copied to the destination at last */
    int first_write; /* the first job that writes into the destination's memory */
} memory;
bool memory_assign(const lowering *l, const uint8_t *overlap, memory *m); /* false: out of memory */
void memory_free(memory *m);

/* The step of a job. out: the layout that it writes; slots may be NULL, to ask whether the machine refuses. */
void step_make(const lowering *l, const job *j, const layout *out, const memory *m, step *s);

/* Does the job read element by element what it writes, so that a value of the same layout may be its output? */
bool job_in_place(const lowering *l, const job *j, int input);

#endif
