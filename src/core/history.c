/* history.c - the latest statements of a thread and their storages, in ring buffers. A storage is only
 * compared by its address, since it may have been freed. */
#include "history.h"
#include "pool.h"
#include "thread.h"
#include <stdlib.h>

#define STATEMENTS_KEPT 2048
#define USES_KEPT       8192
#define CONTEXT         16   /* statements that are compared, at most */
#define TABLE           8192 /* a power of two, larger than the number of storages in a period */
#define REVIEW_EVERY    1024 /* statements between calls of pool_review_pressure */

typedef struct use_kept {
    const storage *b;
    bool reads;
} use_kept;

typedef struct kept {
    uint64_t token; /* a hash of its uses */
    uint64_t first; /* its first use */
} kept;

typedef struct expected {
    const storage *b;
    uint64_t prediction; /* the number of the prediction to which the entry belongs */
    next_use next;
} expected;

struct history {
    kept statements[STATEMENTS_KEPT];
    use_kept uses[USES_KEPT];
    uint64_t n_statements, n_uses; /* ever */
    expected table[TABLE];
    uint64_t predictions;
    double period; /* statements that the last prediction knows */
};

static uint64_t clock_of_uses; /* counts statements of all threads */

static kept *statement_at(history *h, uint64_t n) { return &h->statements[n % STATEMENTS_KEPT]; }

history *history_statement(void)
{
    thread *t = thread_get();
    history *h = t->slot[SLOT_HISTORY];
    if (t->shared) return NULL;
    if (!h) {
        h = t->slot[SLOT_HISTORY] = calloc(1, sizeof *h);
        t->leave[SLOT_HISTORY] = free;
        if (!h) return NULL;
    }
    *statement_at(h, h->n_statements++) = (kept){ 1, h->n_uses };
    const uint64_t now = __atomic_add_fetch(&clock_of_uses, 1, __ATOMIC_RELAXED);
    if (now % REVIEW_EVERY == 0) pool_review_pressure();
    return h;
}

static uint64_t mix(uint64_t h, uint64_t w)
{
    const __uint128_t m = (__uint128_t)(h ^ w) * 0xd6e8feb86659fd93u;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

void history_add(history *h, storage *b, bool reads)
{
    kept *k = statement_at(h, h->n_statements - 1);
    k->token = mix(k->token, (uintptr_t)b | reads);
    h->uses[h->n_uses++ % USES_KEPT] = (use_kept){ b, reads };
    __atomic_store_n(&b->last_use, __atomic_load_n(&clock_of_uses, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    if (b->lent) b->lent = false; /* a statement ends the use of earlier pointers */
}

/* ---- prediction ---- */

/* The number of latest statements up to `n` that equal those up to the last one. */
static int context_at(history *h, uint64_t n, uint64_t oldest)
{
    const uint64_t last = h->n_statements - 1;
    int length = 0;
    while (length < CONTEXT && n >= oldest + (uint64_t)length &&
           statement_at(h, n - (uint64_t)length)->token == statement_at(h, last - (uint64_t)length)->token)
        length++;
    return length;
}

/* The earlier statement with the longest context; the last one if there is none. */
static uint64_t find_earlier(history *h)
{
    const uint64_t last = h->n_statements - 1,
                   oldest = last >= STATEMENTS_KEPT ? last - STATEMENTS_KEPT + 1 : 0;
    uint64_t best = last;
    int longest = 0;
    for (uint64_t n = last; n-- > oldest && longest < CONTEXT;) {
        const int length = context_at(h, n, oldest);
        if (length <= longest) continue;
        longest = length;
        best = n;
    }
    return best;
}

static expected *entry_of(history *h, const storage *b)
{
    uint64_t i = mix((uintptr_t)b, 1);
    expected *e = &h->table[i % TABLE];
    for (int tries = 0; tries < TABLE && e->prediction == h->predictions && e->b != b; tries++)
        e = &h->table[++i % TABLE];
    return e;
}

static void expect(history *h, uint64_t statement, uint64_t distance)
{
    const uint64_t first = statement_at(h, statement)->first,
                   end = statement + 1 < h->n_statements ? statement_at(h, statement + 1)->first : h->n_uses;
    for (uint64_t i = first; i < end && h->n_uses - i <= USES_KEPT; i++) {
        const use_kept *u = &h->uses[i % USES_KEPT];
        expected *e = entry_of(h, u->b);
        if (e->prediction != h->predictions)
            *e = (expected){ u->b, h->predictions, { (double)distance, u->reads } };
    }
}

void history_predict(void)
{
    history *h = thread_get()->slot[SLOT_HISTORY];
    if (!h || !h->n_statements) return;
    h->predictions++;
    const uint64_t last = h->n_statements - 1, earlier = find_earlier(h);
    h->period = (double)(last - earlier);
    for (uint64_t n = earlier + 1; n <= last; n++) expect(h, n, n - earlier);
}

/* Without an expectation the least recently used is the last to be used again. */
next_use history_next(const storage *b)
{
    history *h = thread_get()->slot[SLOT_HISTORY];
    const uint64_t now = __atomic_load_n(&clock_of_uses, __ATOMIC_RELAXED),
                   used = __atomic_load_n(&b->last_use, __ATOMIC_RELAXED);
    const expected *e = h ? entry_of(h, b) : NULL;
    if (e && e->b == b && e->prediction == h->predictions) return e->next;
    return (next_use){ (h ? h->period : 0) + (double)(now - used) + 1, true };
}
