/* cpu_kernels.h - the functions that run steps, by element type and instruction set. */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H

#include "cost.h"
#include "generated.h"

typedef duet_status run_function(const step *s, const frame *f);
typedef bool sure_function(const step *s);
typedef size_t size_function(const step *s);

/* The functions that are compiled for each element type and each instruction set. */
typedef struct isa_functions {
    run_function *program, *reduction, *softmax, *norm, *pool2d, *random;
    size_function *reduction_scratch;
} isa_functions;

/* The functions for the instruction set in use and the type that a step computes in. Programs only load
 * and store elements of types that no step computes in. */
const isa_functions *isa_functions_of(duet_dtype type);

/* How the CPU runs the steps of a kernel number. algorithm and forget may be NULL. A kernel takes
 * scratch memory when it runs, because the size depends on the number of threads, which is chosen then. If
 * `scratch` is not NULL, one thread needs no other memory than that. */
typedef struct cpu_kernel {
    const char *(*unsupported)(
        const step *s); /* NULL: the step is supported; else why it is not, a static text */
    run_function *run;
    step_cost *cost;                         /* seconds expected */
    const char *(*algorithm)(const step *s); /* for duet_explain, a static text */
    void (*forget)(step *s);                 /* frees s->cached */
    bool calls_library;                      /* which may use OpenMP's threads */
    sure_function *is_sure;                  /* as machine.is_sure; NULL: no */
    size_function *scratch;                  /* as machine.scratch; NULL: 0 */
} cpu_kernel;

/* Declarations of all entries. */
#define CPU_KERNEL(number, entry) extern const cpu_kernel entry;
#include "cpu_kernels.def"

extern const cpu_kernel *const cpu_kernels[KERNELS_ALL];                                  /* registry.c */
static inline const cpu_kernel *cpu_kernel_of(int kernel) { return cpu_kernels[kernel]; } /* or NULL */

/* For entries (supported.c): the type that a step computes in; are all operands of one type; is that
 * type f32 or f64? */
duet_dtype step_computes_in(const step *s);
bool step_has_one_type(const step *s);
const char *float_step_unsupported(const step *s);

bool always_sure(const step *s); /* of kernels that allocate nothing and compute any operand */

/* What a step with a program caches: this, and for programs without reductions more. */
typedef struct program_cache {
    run_function *owner; /* the function that made it */
    generated_use generated;
} program_cache;

void program_forget(step *s); /* frees it */

static inline void *address(const frame *f, const operand *o) { return f->data[o->slot]; }

/* Copies elements between layouts of equal sizes and one type that do not overlap. */
duet_status copy_elements(void *to, const layout *to_at, const void *from, const layout *from_at);

/* A dense copy of an operand in a block of the pool, which the caller gives back by scratch_give. */
duet_status scratch_copy(const operand *o, const frame *f, void **p);
duet_status scratch_take(size_t bytes, const frame *f, void **p);
void scratch_give(void *p); /* NULL is accepted */

/* The largest smaller size of a matrix for LAPACK's divide-and-conquer SVD, which counts the elements
 * of its workspace in int. */
enum { SVD_MAX = 23000, COMPLEX_SVD_MAX = 20000 };

#endif
