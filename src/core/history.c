/* history.c - the latest statements of a thread and their storages, in ring buffers. */
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
    uint64_t id; /* storage.id */
    bool reads;
} use_kept;

typedef struct kept {
    uint64_t plan, first; /* first: its first use */
    unsigned uses;
} kept;

/* What is known of a storage for one prediction. */
typedef struct entry {
    uint64_t id, prediction; /* the number of that prediction */
    uint64_t now;            /* the storage that is the same operand now; 0: itself */
    next_use next;           /* distance 0: unknown */
} entry;

struct history {
    kept statements[STATEMENTS_KEPT];
    use_kept uses[USES_KEPT];
    uint64_t n_statements, n_uses; /* ever */
    entry table[TABLE];
    int entries; /* of this prediction */
    uint64_t predictions;
    double period; /* statements that the last prediction knows */
};

static uint64_t clock_of_uses; /* counts statements of all threads */

static kept *statement_at(history *h, uint64_t n) { return &h->statements[n % STATEMENTS_KEPT]; }

static const use_kept *use_at(const history *h, const kept *k, unsigned i)
{
    return &h->uses[(k->first + i) % USES_KEPT];
}

/* ---- what happened ---- */

static history *thread_history(void)
{
    thread *t = thread_get();
    if (t->shared || t->slot[SLOT_HISTORY]) return t->shared ? NULL : t->slot[SLOT_HISTORY];
    t->leave[SLOT_HISTORY] = free;
    return t->slot[SLOT_HISTORY] = calloc(1, sizeof(history));
}

history *history_statement(uint64_t plan)
{
    history *h = thread_history();
    const uint64_t now = __atomic_add_fetch(&clock_of_uses, 1, __ATOMIC_RELAXED);
    if (now % REVIEW_EVERY == 0) pool_review_pressure();
    if (h) *statement_at(h, h->n_statements++) = (kept){ plan, h->n_uses, 0 };
    return h;
}

void history_add(history *h, storage *b, bool reads)
{
    statement_at(h, h->n_statements - 1)->uses++;
    h->uses[h->n_uses++ % USES_KEPT] = (use_kept){ b->id, reads };
    __atomic_store_n(&b->last_use, __atomic_load_n(&clock_of_uses, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    if (__atomic_load_n(&b->lent, __ATOMIC_RELAXED)) /* a statement ends the use of earlier pointers */
        __atomic_store_n(&b->lent, false, __ATOMIC_RELAXED);
}

/* ---- the earlier time ---- */

/* The oldest statement of which all is still kept. */
static uint64_t oldest_kept(history *h)
{
    uint64_t n = h->n_statements > STATEMENTS_KEPT ? h->n_statements - STATEMENTS_KEPT : 0;
    while (n < h->n_statements && h->n_uses - statement_at(h, n)->first > USES_KEPT) n++;
    return n;
}

static bool same_plan(const kept *a, const kept *b) { return a->plan == b->plan && a->uses == b->uses; }

/* How many operands of the latest statements up to `n` are those of the statements up to the last one. */
static int likeness(history *h, uint64_t n, uint64_t oldest)
{
    int alike = 0;
    for (uint64_t k = 0; k < CONTEXT && n >= oldest + k; k++) {
        const kept *a = statement_at(h, n - k), *b = statement_at(h, h->n_statements - 1 - k);
        if (!same_plan(a, b)) break;
        for (unsigned i = 0; i < a->uses; i++) alike += use_at(h, a, i)->id == use_at(h, b, i)->id;
    }
    return alike;
}

/* The earlier statement that is most like the last one, with those before them; the last one if none is. */
static uint64_t find_earlier(history *h, uint64_t oldest)
{
    const uint64_t last = h->n_statements - 1;
    uint64_t best = last;
    int most = 0;
    for (uint64_t n = last; n-- > oldest;) {
        const int alike = likeness(h, n, oldest);
        if (alike <= most) continue;
        most = alike;
        best = n;
    }
    return best;
}

/* ---- the prediction ---- */

static uint64_t hash(uint64_t id)
{
    const __uint128_t m = (__uint128_t)id * 0xd6e8feb86659fd93u;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* The entry of a storage in this prediction, or a free one, or NULL. */
static entry *find(history *h, uint64_t id)
{
    for (uint64_t i = hash(id), tries = 0; tries < TABLE; i++, tries++) {
        entry *e = &h->table[i % TABLE];
        if (e->prediction != h->predictions || e->id == id) return e;
    }
    return NULL;
}

/* The same, but a free entry becomes that of the storage. NULL: there are too many. */
static entry *find_or_add(history *h, uint64_t id)
{
    entry *e = find(h, id);
    if (!e || (e->prediction == h->predictions)) return e;
    if (h->entries == TABLE / 2) return NULL;
    h->entries++;
    *e = (entry){ .id = id, .prediction = h->predictions };
    return e;
}

/* Which storages have taken the place of earlier ones? */
static void pair_operands(history *h, uint64_t earlier, uint64_t oldest)
{
    const uint64_t last = h->n_statements - 1, period = last - earlier;
    for (uint64_t k = 0; k < period && earlier >= oldest + k; k++) {
        const kept *a = statement_at(h, earlier - k), *b = statement_at(h, last - k);
        if (!same_plan(a, b)) break;
        for (unsigned i = 0; i < a->uses; i++) {
            const uint64_t then = use_at(h, a, i)->id, now = use_at(h, b, i)->id;
            entry *e = then != now ? find_or_add(h, then) : NULL;
            if (e && !e->now) e->now = now;
        }
    }
}

static void expect(history *h, const kept *k, uint64_t distance)
{
    for (unsigned i = 0; i < k->uses; i++) {
        const use_kept *u = use_at(h, k, i);
        const entry *then = find(h, u->id);
        const bool is_other = then && then->prediction == h->predictions && then->now;
        entry *e = find_or_add(h, is_other ? then->now : u->id);
        if (e && !(e->next.distance > 0)) e->next = (next_use){ (double)distance, u->reads };
    }
}

void history_predict(void)
{
    history *h = thread_get()->slot[SLOT_HISTORY];
    if (!h || !h->n_statements) return;
    h->predictions++;
    h->entries = 0;
    const uint64_t last = h->n_statements - 1, oldest = oldest_kept(h), earlier = find_earlier(h, oldest);
    h->period = (double)(last - earlier);
    pair_operands(h, earlier, oldest);
    for (uint64_t n = earlier + 1; n <= last; n++) expect(h, statement_at(h, n), n - earlier);
}

/* Without an expectation, the least recently used is the last to be used again. */
next_use history_next(const storage *b)
{
    history *h = thread_get()->slot[SLOT_HISTORY];
    const uint64_t now = __atomic_load_n(&clock_of_uses, __ATOMIC_RELAXED),
                   used = __atomic_load_n(&b->last_use, __ATOMIC_RELAXED);
    const entry *e = h ? find(h, b->id) : NULL;
    if (e && e->prediction == h->predictions && e->next.distance > 0) return e->next;
    return (next_use){ (h ? h->period : 0) + (double)(now - used) + 1, true };
}
