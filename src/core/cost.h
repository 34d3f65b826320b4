/* cost.h - how long work is expected to take, for the choice of machine alone. A machine ships with costs of its own; those measured on this
 * very machine take their place. */
#ifndef COST_H
#define COST_H

#include "backend.h"

enum cost {
#define COST(name, ...) COST_##name,
#include "cost.def"
    COSTS
};

#define COST_POINTS 6
typedef struct cost_info {
    const char *name, *unit;
    int points;
    double work[COST_POINTS];
} cost_info;
extern const cost_info cost_infos[COSTS];

/* Seconds at the points of each curve. A curve never falls, and its first point is what it takes to begin. */
typedef struct costs {
    double seconds[COSTS][COST_POINTS];
} costs;

/* In a straight line from point to point, and on as between the last two; below the first point what that takes. */
double cost_at(const costs *c, enum cost kind, double work);

/* The seconds that a step is expected to take: for the entries of kernels. */
typedef double step_cost(const step *s, const costs *c);
step_cost cost_of_pass;      /* one pass over the operands */
step_cost cost_of_elements;  /* ... with one function such as exp for each element of the result */
step_cost cost_of_softmax;   /* ... with two */
step_cost cost_of_flops;     /* ... with s->flops additions or multiplications */
step_cost cost_of_pooling;   /* ... with one for each element of each window */
step_cost cost_of_transform; /* ... with s->flops operations of a Fourier transform */
step_cost cost_of_program;   /* ... with the operators of a program */
step_cost cost_of_product, cost_of_batched, cost_of_conv, cost_of_solver;

/* From the host to a device, or from the default GPU to the host. */
double cost_of_move(size_t bytes, int to, bool pinned);

/* Can they be believed? Every curve of the machine is positive and never falls. */
bool costs_sound(const costs *c, int device);

/* The devices that costs are measured for: those that DUET_AUTO chooses from. Other GPUs take the costs of the default one. */
#define COSTED (DEFAULT_GPU + 1)

/* Those to go by now. */
const costs *costs_now(int device);

/* Goes by these from here on, one for each device; NULL: by those that the machines ship with. origin: in words, for duet_info; it is copied.
 * Plans ask for the edition, 1 at first, to know that costs have changed. While other threads plan, this may be called once. */
#define COST_ORIGIN 800
void costs_use(const costs measured[COSTED], const char *origin);
unsigned costs_edition(void);
const char *costs_origin(void);

#endif
