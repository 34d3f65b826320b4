/* cache.c - each thread's cache of plans. The key contains all that a plan depends on: the words of
 * the formula, and the properties of the destinations except their addresses. */
#include "compiler.h"
#include "matrix.h"
#include "plan.h"
#include "pool.h"
#include "status.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>

#define BUCKETS     1024
#define PLANS_MAX   2048               /* with more plans than this, */
#define PLANS_BYTES ((size_t)16 << 20) /* or more bytes, */
#define LIBRARIES   ((size_t)96 << 20) /* or more bytes in libraries, all plans are freed */

#define SITE_BITS 6 /* log2 of the number of call sites whose latest plans are remembered */

static uint64_t mix(uint64_t h, uint64_t w)
{
    __uint128_t m = (__uint128_t)(h ^ w) * 0xd6e8feb86659fd93u;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t two_words(const uint32_t *w)
{
    uint64_t x;
    memcpy(&x, w, 8);
    return x;
}

/* Two independent chains, so that the multiplications overlap. */
static uint64_t hash(uint64_t h, const uint32_t *w, uint32_t n)
{
    uint64_t other = n;
    for (; n >= 4; n -= 4, w += 4) {
        h = mix(h, two_words(w));
        other = mix(other, two_words(w + 2));
    }
    if (n >= 2) {
        h = mix(h, two_words(w));
        n -= 2;
        w += 2;
    }
    if (n) other = mix(other, *w);
    return h ^ (other << 32 | other >> 32);
}

/* What a plan depends on besides the formula: device, fusion, math mode, the layouts of the
 * destinations, and which matrices overlap. */
#define TARGET_MAX (2 + 4 * DUET_RANK_MAX)
#define HEAD_MAX   (4 + TARGET_MAX * STATEMENTS)
typedef struct key_head {
    uint32_t length, word[HEAD_MAX];
} key_head;

typedef struct plan_cache {
    plan *bucket[BUCKETS];
    const plan *latest[2][1 << SITE_BITS]; /* by call site, on the host and on a GPU */
    unsigned count;
    size_t bytes, library_bytes;
    uint64_t made; /* plans ever made */
    key_head head; /* of the statement that is searched for; too large for small stacks */
} plan_cache;

static inline uint32_t *put64(uint32_t *w, int64_t x)
{
    memcpy(w, &x, 8);
    return w + 2;
}

static inline enum overlap overlap_of(const duet_matrix *to, const duet_matrix *m)
{
    if (m == to) return SAME;
    if (m->storage != to->storage) return APART;
    return matrix_overlap(to, m);
}

/* Two bits for each pair of matrices. Up to 31 pairs are stored exactly, more are hashed. */
static inline void note_overlap(uint64_t pattern[2], enum overlap o)
{
    pattern[0] = pattern[0] << 2 | (o + 1u);
    if (unlikely(pattern[0] >> 62 != 0)) {
        pattern[1] = mix(pattern[1] + 1, pattern[0]);
        pattern[0] = 0;
    }
}

/* Each leaf and each later destination with each destination. */
static inline uint64_t overlaps(const statement *s, int count)
{
    uint64_t pattern[2] = { 0 };
    for (int k = 0; k < count; k++) {
        const duet_matrix *to = s->to[k].m;
        for (const node *n = leaf_last(s->f); n; n = leaf_before(s->f, n))
            note_overlap(pattern, overlap_of(to, n->matrix));
        for (int later = k + 1; later < count; later++) note_overlap(pattern, overlap_of(to, s->to[later].m));
    }
    return pattern[0] ^ pattern[1];
}

static inline uint32_t target_word(const duet_matrix *m)
{
    return (uint32_t)m->at.type | (uint32_t)m->at.rank << 8 | (uint32_t)m->dense << 16;
}

static uint32_t *put_target(uint32_t *w, const duet_matrix *m)
{
    *w++ = target_word(m);
    for (int i = 0; i < m->at.rank; i++) w = put64(w, m->at.size[i]);
    for (int i = 0; i < m->at.rank && !m->dense; i++) w = put64(w, m->at.stride[i]);
    return w;
}

_Static_assert(DEVICES_MAX <= 16 && STATEMENTS < 256, "the fields of first_word");
static inline uint32_t first_word(const statement *s, int count, int device)
{
    return (uint32_t)device | (uint32_t)s->fusion << 4 | (uint32_t)count << 8 | (uint32_t)s->math << 16;
}

#define HEAD_SIZES 4 /* index of the sizes of the first destination */

static void make_key_head(const statement *s, int count, int device, key_head *h)
{
    uint32_t *w = h->word;
    *w++ = first_word(s, count, device);
    w = put64(w, (int64_t)overlaps(s, count));
    for (int k = 0; k < count; k++) {
        w = put_target(w, s->to[k].m);
        if (count > 1) *w++ = s->to[k].node;
    }
    h->length = (uint32_t)(w - h->word);
}

static inline bool is_formula(const plan *p, uint32_t at, const formula *f)
{
    return p->key_length == at + f->length && !memcmp(p->key + at, f->words, f->length * sizeof *p->key);
}

static inline bool is_key(const plan *p, const key_head *h, const formula *f)
{
    return is_formula(p, h->length, f) && !memcmp(p->key, h->word, h->length * sizeof *p->key);
}

/* The same for one statement with a dense destination, without building the head: loading it right
 * after storing it would stall. */
static inline bool is_plain_key(const plan *p, const statement *s, int device)
{
    const duet_matrix *to = s->to[0].m;
    const uint32_t rank = (uint32_t)to->at.rank, *w = p->key;
    const uint64_t pattern = overlaps(s, 1);
    bool same = to->dense && w[0] == first_word(s, 1, device) && !memcmp(w + 1, &pattern, 8) &&
                w[3] == target_word(to);
    for (uint32_t i = 0; i < rank && same; i++) same = !memcmp(w + HEAD_SIZES + 2 * i, &to->at.size[i], 8);
    return same && is_formula(p, HEAD_SIZES + 2 * rank, s->f);
}

static __attribute__((noinline)) void clear_cache(plan_cache *c)
{
    for (int i = 0; i < BUCKETS; i++)
        for (plan *p = c->bucket[i]; p; p = c->bucket[i]) {
            c->bucket[i] = p->next;
            plan_free(p);
        }
    memset(c->latest, 0, sizeof c->latest);
    pool_count_plans(-(ptrdiff_t)(c->bytes + c->library_bytes));
    c->count = 0;
    c->bytes = c->library_bytes = 0;
}

static void free_cache(void *c)
{
    clear_cache(c);
    free(c);
}

static plan_cache *thread_cache(void)
{
    thread *t = thread_get();
    if (likely(t->slot[SLOT_PLANS] != NULL)) return t->slot[SLOT_PLANS];
    if (t->shared) return NULL;
    t->leave[SLOT_PLANS] = free_cache;
    return t->slot[SLOT_PLANS] = calloc(1, sizeof(plan_cache));
}

void plans_reserve(int statements)
{
    plan_cache *c = thread_get()->slot[SLOT_PLANS];
    if (unlikely(c && (c->count + (unsigned)(2 * statements) > PLANS_MAX || c->bytes > PLANS_BYTES ||
                       c->library_bytes > LIBRARIES)))
        clear_cache(c);
}

void plan_enter(plan *p)
{
    plan_cache *c = thread_cache();
    if (!c) return;
    p->number = ++c->made;
    c->bytes += plan_bytes(p);
    c->library_bytes += plan_library_bytes(p);
    pool_count_plans((ptrdiff_t)(plan_bytes(p) + plan_library_bytes(p)));
}

static __attribute__((noinline)) plan *add(plan_cache *c, const statement *s, int device, const key_head *h,
                                           uint64_t key_hash)
{
    COUNT(plan_misses);
    plan *p = plan_make(s, device);
    if (!p) return NULL;
    p->hash = key_hash;
    p->key_length = h->length + s->f->length;
    p->key = malloc(p->key_length * sizeof *p->key);
    if (!p->key) {
        plan_free(p);
        fail(DUET_NO_MEMORY, "no host memory for the key of a plan");
        return NULL;
    }
    memcpy(p->key, h->word, h->length * sizeof *p->key);
    memcpy(p->key + h->length, s->f->words, s->f->length * sizeof *p->key);
    p->next = c->bucket[key_hash % BUCKETS];
    c->bucket[key_hash % BUCKETS] = p;
    c->count++;
    plan_enter(p);
    return p;
}

static __attribute__((noinline)) const plan *search(plan_cache *c, const statement *s, int device,
                                                    const key_head *h)
{
    const uint64_t key_hash = hash(hash(h->length, h->word, h->length), s->f->words, s->f->length);
    for (plan *p = c->bucket[key_hash % BUCKETS]; p; p = p->next)
        if (p->hash == key_hash && is_key(p, h, s->f)) {
            COUNT(plan_hits);
            return p;
        }
    return add(c, s, device, h, key_hash);
}

/* A call site usually runs the statement that it ran before. Then no hash is needed. */
static const plan **latest_at(plan_cache *c, const char *site, int device)
{
    /* the upper bits depend on all bits of the address */
    const uint64_t spread = (uint64_t)(uintptr_t)site * 0x9e3779b97f4a7c15u;
    return &c->latest[device != HOST][spread >> (64 - SITE_BITS)];
}

static __attribute__((noinline)) const plan *find_by_key_head(plan_cache *c, const statement *s, int device,
                                                              const plan **latest)
{
    key_head *h = &c->head;
    make_key_head(s, s->count, device, h);
    if (!*latest || !is_key(*latest, h, s->f)) return *latest = search(c, s, device, h);
    COUNT(plan_hits);
    return *latest;
}

const plan *plan_find(const statement *s, int device)
{
    plan_cache *c = thread_cache();
    if (unlikely(!c)) {
        fail(DUET_NO_MEMORY, "no host memory for the cache of plans");
        return NULL;
    }
    const plan **latest = latest_at(c, thread_get()->site, device);
    const bool found = s->count == 1 && *latest && is_plain_key(*latest, s, device);
    if (unlikely(!found)) return find_by_key_head(c, s, device, latest);
    COUNT(plan_hits);
    return *latest;
}
