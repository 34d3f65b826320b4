/* cost.h - the expected time of steps and copies. It is used only to choose the machine. Machines
 * have built-in costs; costs measured on this computer can replace them. */
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

/* Seconds at the points of each curve. A curve never falls. Its first point is the time of an empty
 * operation. */
typedef struct costs {
    double seconds[COSTS][COST_POINTS];
} costs;

/* Is it a curve of copies? The host has none of these. */
static inline bool cost_is_of_copies(enum cost k)
{
    return k == COST_up || k == COST_down || k == COST_up_pinned || k == COST_down_pinned;
}

/* Interpolates linearly between points, and extrapolates beyond the last one. Below the first point
 * it returns that point's seconds. */
double cost_at(const costs *c, enum cost kind, double work);

/* Returns the seconds that a step is expected to take. The registries of kernels refer to these
 * functions. */
typedef double step_cost(const step *s, const costs *c);
step_cost cost_of_pass;      /* one pass over the operands */
step_cost cost_of_softmax;   /* ... with two functions such as exp for each element of the result */
step_cost cost_of_flops;     /* ... with s->flops additions or multiplications */
step_cost cost_of_pooling;   /* ... with one addition or multiplication for each element of each window */
step_cost cost_of_transform; /* ... with s->flops operations of a Fourier transform */
step_cost cost_of_program;   /* ... with the operators of a program */
step_cost cost_of_product, cost_of_batched, cost_of_conv, cost_of_solver;

/* The time of an element-wise operator, in times of a function such as exp. */
double cost_weight(enum op op);

/* Seconds to copy from the host to a device, or from the default GPU to the host. */
double cost_of_move(size_t bytes, int to, bool pinned);

/* Are the costs valid? Every curve of the machine must be positive and never fall. */
bool costs_sound(const costs *c, int device);

/* The devices that costs are measured for: those that DUET_AUTO chooses from. The other devices of
 * their machines take the same costs. */
#define COSTED (DEFAULT_GPU + 1)

/* The costs in use. */
const costs *costs_now(int device);

/* Replaces the costs by c, one for each device; NULL restores the built-in ones. origin describes
 * them for duet_info and is copied. The edition, 1 at first, is increased, so that plans notice.
 * Other threads may be planning, but this must not be called twice at the same time. */
#define COST_ORIGIN 800
void costs_use(const costs measured[COSTED], const char *origin);
unsigned costs_edition(void);
const char *costs_origin(void);

#endif
