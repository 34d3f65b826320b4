/* communicator.h - how a rank of a group exchanges elements with the other ranks. A rank is a thread of this
 * process, or a process; it has one device. Every rank calls these functions in the same order. */
#ifndef COMMUNICATOR_H
#define COMMUNICATOR_H

#include "reduce_order.h"
#include "shape.h"
#include "status.h"
#include <duet/transport.h>

typedef struct communicator {
    duet_transport host; /* messages of this rank, in host memory. exchange NULL: the ranks do not agree */
    int rank, ranks;
    int device;     /* of this rank: HOST or a GPU */
    double timeout; /* seconds */
    struct collective *collectives;
    void *link;      /* the machine's connection to the GPUs of the other ranks (machine.connect), or NULL */
    uint64_t agreed; /* the number of calls of communicator_agree */
    bool quiet;      /* the ranks have agreed to replay a recording: steps on a GPU do not agree again */
    bool told;       /* all ranks know that a rank has failed; cleared before each statement */
    /* Not OK: ranks may be at different statements, so nothing may be sent. why: the reason */
    duet_status broken;
    char why[1000];
} communicator;

/* Waits until all ranks have called it. mine: the status of this rank; its text is that of the thread. word:
 * must be equal on all ranks, such as a hash of the statement and the number of the exchange.
 * Errors    mine, if it is not OK. RANK_FAILED: another rank has failed, has another word, or does not
 *           answer; the text names the rank and has its text */
duet_status communicator_agree(communicator *c, duet_status mine, uint64_t word);

/* Combines two words. */
static inline uint64_t hash_step(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

/* Sends and receives in host memory, after the ranks have agreed. Errors: RANK_FAILED; c is then broken */
duet_status communicator_exchange(communicator *c, const duet_message *send, int sends,
                                  const duet_message *receive, int receives);

/* ---- how elements are distributed, and steps that change it ---- */

/* Which elements of an array each rank has. Rank r has the indices bounds[r] to bounds[r + 1] - 1 of this
 * axis. If axis is -1, every rank has all elements.
 *
 * In a grid of ranks, which has parts > 0, rank r has part r / step % parts of the axis instead. Several
 * ranks then have the same part, unless the grid divides a second axis between them (second.parts > 0). */
typedef struct distribution {
    int axis;
    int64_t *bounds; /* ranks + 1 of them, or parts + 1, or NULL */
    int step, parts;
    struct second_axis {
        int axis;
        int64_t *bounds; /* parts + 1 of them */
        int step, parts;
    } second;
} distribution;

static inline distribution replicated(void) { return (distribution){ -1, NULL }; }

/* MOVE      from one distribution to another. Either each element is on one rank before, or all are on every
 *           rank
 * ADD       each rank has a partial sum of the whole array; each receives its part of the sum, as in `to` */
enum collective_kind { COLLECTIVE_MOVE, COLLECTIVE_ADD };

/* Elements that one rank sends to another: their first index and their number along each axis, in the local
 * array of the rank that has the structure. */
typedef struct collective_box {
    int peer;
    int64_t count, start[DUET_RANK_MAX], size[DUET_RANK_MAX];
} collective_box;

/* The elements that two boxes have in common, in the array of the first one. */
collective_box common_box(const shape *start, const shape *size, const shape *other_start,
                          const shape *other_size, int peer);

/* What a collective step of one rank does. It is constant, and is freed with its group. */
typedef struct collective {
    int id; /* in attributes.collective of steps */
    enum collective_kind kind;
    communicator *c;
    uint64_t signature; /* equal on all ranks */
    shape whole;        /* the sizes of the whole array */
    duet_dtype type;
    distribution from, to; /* ADD: from.axis is -1 */
    shape in, out;         /* the sizes of this rank's operand and result */
    int sends, receives;
    collective_box *send, *receive; /* in the order of the ranks. What stays on this rank: */
    collective_box kept_in, kept_out;
    int64_t send_count, receive_count;         /* elements of all boxes */
    const struct collective *scatter, *gather; /* ADD to all ranks runs scatter, then gather, on 1-d arrays */
    struct collective *next;                   /* of the same communicator */
} collective;

/* The layout of a box within a local array with this layout, and the offset of its first element. Returns
 * whether it is dense. */
bool collective_box_at(const collective_box *b, const layout *local, layout *at, int64_t *offset);

/* Returns a step that changes the distribution of an array: an existing one if it is equal. NULL: out of
 * memory */
const collective *collective_new(communicator *c, enum collective_kind kind, duet_dtype type,
                                 const shape *whole, const distribution *from, const distribution *to);

/* The collective with this id. */
const collective *collective_of(int id);

/* Frees the collectives of c. */
void collectives_free(communicator *c);

/* Bytes that this rank sends to other ranks. */
int64_t collective_bytes(const collective *x);

/* The first index of a rank, if an axis of n elements is divided evenly. */
static inline int64_t part_first(int64_t n, int ranks, int rank)
{
    return n / ranks * rank + (rank < n % ranks ? rank : n % ranks);
}

/* The same for matrices. Long parts begin at multiples of REDUCE_BLOCK, so that no block of the canonical
 * order of sums is divided between ranks. */
#define PART_LONG (64 * REDUCE_BLOCK)
static inline int64_t matrix_part_first(int64_t n, int ranks, int rank)
{
    const int64_t first = part_first(n, ranks, rank);
    if (n / ranks < PART_LONG || rank == ranks) return first;
    return first / REDUCE_BLOCK * REDUCE_BLOCK;
}

/* The first index and the size of the part of a rank, along each axis: a box. */
void distribution_part(const distribution *d, const shape *whole, int rank, shape *start, shape *size);
bool distribution_equal(const distribution *a, const distribution *b, int ranks);

#endif
