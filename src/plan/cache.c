/* cache.c - plans by their key: the words of the formula, and all else that a plan depends on but addresses and numbers. */
#include "matrix.h"
#include "plan.h"
#include "status.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>

#define BUCKETS     1024
#define PLANS_MAX   2048               /* beyond that, or */
#define PLANS_BYTES ((size_t)16 << 20) /* that, all are dropped */

typedef struct plans {
    plan *bucket[BUCKETS];
    unsigned count;
    size_t bytes;
} plans;

static uint64_t mix(uint64_t h, uint64_t w)
{
    __uint128_t m = (__uint128_t)(h ^ w) * 0xd6e8feb86659fd93u;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t hash(uint64_t h, const uint32_t *w, uint32_t n)
{
    for (; n >= 2; n -= 2, w += 2) h = mix(h, (uint64_t)w[1] << 32 | w[0]);
    return n ? mix(h, *w) : h;
}

/* What a plan depends on beside the formula: machine, fusion, the layouts of the destinations; what overlaps what. */
#define TARGET_MAX (2 + 4 * DUET_RANK_MAX)
#define HEAD_MAX   (4 + TARGET_MAX * STATEMENTS)
typedef struct head {
    uint32_t length, word[HEAD_MAX];
} head;

static void put64(head *h, int64_t x) { memcpy(h->word + h->length, &x, 8), h->length += 2; }

static inline enum overlap overlap_of(const duet_matrix *to, const duet_matrix *m)
{
    return m == to ? SAME : m->bits == to->bits ? matrix_overlap(to, m) : APART;
}

/* Of every leaf and destination with every destination. */
static uint64_t overlaps(const statement *s)
{
    uint64_t h = 0;
    for (int k = 0; k < s->count; k++) {
        const duet_matrix *to = s->to[k].m;
        for (uint32_t i = 0; i < s->f->count; i++)
            if (s->f->nodes[i].op == OP_LEAF) h = mix(h, overlap_of(to, s->f->nodes[i].matrix) + 1u);
        for (int later = k + 1; later < s->count; later++) h = mix(h, overlap_of(to, s->to[later].m) + 1u);
    }
    return h;
}

static void put_target(head *h, const target *t)
{
    const layout *to = &t->m->at;
    h->word[h->length++] = (uint32_t)to->type | (uint32_t)to->rank << 8 | (uint32_t)t->m->dense << 16;
    for (int i = 0; i < to->rank; i++) put64(h, to->size[i]);
    for (int i = 0; i < to->rank && !t->m->dense; i++) put64(h, to->stride[i]);
}

static void make_head(const statement *s, const machine *on, head *h)
{
    h->length = 0;
    h->word[h->length++] = (uint32_t)on->side | (uint32_t)s->fusion << 4 | (uint32_t)s->count << 8;
    put64(h, (int64_t)overlaps(s));
    for (int k = 0; k < s->count; k++) {
        put_target(h, &s->to[k]);
        if (s->count > 1) h->word[h->length++] = s->to[k].node;
    }
}

static bool is_key(const plan *p, uint64_t key_hash, const head *h, const formula *f)
{
    return p->hash == key_hash && p->key_length == h->length + f->length &&
           !memcmp(p->key, h->word, h->length * sizeof *p->key) &&
           !memcmp(p->key + h->length, f->words, f->length * sizeof *p->key);
}

static void drop(plans *c)
{
    for (int i = 0; i < BUCKETS; i++)
        for (plan *p = c->bucket[i]; p; p = c->bucket[i]) c->bucket[i] = p->next, plan_free(p);
    c->count = 0, c->bytes = 0;
}

static void leave(void *c) { drop(c), free(c); }

static plans *mine(void)
{
    thread *t = thread_get();
    if (__builtin_expect(t->room[ROOM_PLANS] != NULL, 1)) return t->room[ROOM_PLANS];
    if (t->shared) return NULL;
    t->leave[ROOM_PLANS] = leave;
    return t->room[ROOM_PLANS] = calloc(1, sizeof(plans));
}

void plans_make_room(int statements)
{
    plans *c = thread_get()->room[ROOM_PLANS];
    if (c && (c->count + (unsigned)(SIDES * statements) > PLANS_MAX || c->bytes > PLANS_BYTES)) drop(c);
}

static __attribute__((noinline)) plan *add(plans *c, const statement *s, const machine *on, const head *h, uint64_t key_hash)
{
    COUNT(plan_misses);
    plan *p = plan_make(s, on);
    if (!p) return NULL;
    p->hash = key_hash, p->key_length = h->length + s->f->length;
    p->key = malloc(p->key_length * sizeof *p->key);
    if (!p->key) return plan_free(p), fail(DUET_NO_MEMORY, "no memory for the key of a plan"), NULL;
    memcpy(p->key, h->word, h->length * sizeof *p->key);
    memcpy(p->key + h->length, s->f->words, s->f->length * sizeof *p->key);
    p->next = c->bucket[key_hash % BUCKETS], c->bucket[key_hash % BUCKETS] = p;
    c->count++, c->bytes += plan_bytes(p);
    return p;
}

const plan *plan_find(const statement *s, const machine *on)
{
    plans *c = mine();
    if (!c) return fail(DUET_NO_MEMORY, "no memory for a cache of plans"), NULL;
    head h;
    make_head(s, on, &h);
    uint64_t key_hash = hash(hash(h.length, h.word, h.length), s->f->words, s->f->length);
    for (plan *p = c->bucket[key_hash % BUCKETS]; p; p = p->next)
        if (is_key(p, key_hash, &h, s->f)) {
            COUNT(plan_hits);
            return p;
        }
    return add(c, s, on, &h, key_hash);
}
