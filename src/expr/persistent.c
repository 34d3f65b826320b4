/* persistent.c - formulas that outlive their evaluation (duet_hold): copies outside of the arena,
 * in slots that are reused. */
#include "arena.h"
#include "status.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BITS 24
#define CHUNK     1024
#define CHUNKS    ((1u << SLOT_BITS) / CHUNK)

/* The generation increases when a slot is taken and when it is released. It is odd while the slot holds
 * a formula. */
typedef struct slot {
    uint64_t generation;
    node *nodes;
    uint32_t *words;
    uint32_t count, length;
    const char *dropped;
    uint32_t next_free;
} slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slot *chunk[CHUNKS];
static uint32_t slots = 1, free_slot; /* 0: none */

static slot *slot_at(uint32_t i)
{
    slot *c = __atomic_load_n(&chunk[i / CHUNK], __ATOMIC_ACQUIRE);
    return c ? &c[i % CHUNK] : NULL;
}

static duet_expr handle(uint32_t i, uint64_t generation)
{
    return (duet_expr){ SERIAL_HELD | generation << SLOT_BITS | i };
}

static slot *slot_of(duet_expr e) { return slot_at((uint32_t)(e.serial & ((1u << SLOT_BITS) - 1))); }

/* The node of a formula that is still persistent. */
static slot *slot_find(duet_expr e)
{
    slot *s = slot_of(e);
    const uint64_t generation = (e.serial & ~SERIAL_HELD) >> SLOT_BITS;
    return s && __atomic_load_n(&s->generation, __ATOMIC_ACQUIRE) == generation && generation & 1 ? s : NULL;
}

duet_status held_missing(duet_expr e, const char *what)
{
    const slot *s = slot_of(e);
    if (s && s->dropped)
        return fail(DUET_SPENT, "%s is a persistent formula that was dropped at %s", what, s->dropped);
    return fail(DUET_SPENT, "%s is a persistent formula that was dropped", what);
}

const node *held_look(duet_expr e, uint32_t *root, const uint32_t **words, uint32_t *length)
{
    slot *s = slot_find(e);
    if (!s) return NULL;
    *root = s->count - 1;
    *words = s->words;
    *length = s->length;
    return s->nodes;
}

/* The index of a free slot; 0: no memory. */
static uint32_t slot_take(void)
{
    pthread_mutex_lock(&lock);
    uint32_t i = free_slot;
    if (i) {
        free_slot = slot_at(i)->next_free;
    } else if (slots < CHUNK * CHUNKS) {
        slot *c = slot_at(slots) ? chunk[slots / CHUNK] : calloc(CHUNK, sizeof(slot));
        if (c) {
            __atomic_store_n(&chunk[slots / CHUNK], c, __ATOMIC_RELEASE);
            i = slots++;
        }
    }
    pthread_mutex_unlock(&lock);
    return i;
}

static void slot_give(uint32_t i)
{
    pthread_mutex_lock(&lock);
    slot_at(i)->next_free = free_slot;
    free_slot = i;
    pthread_mutex_unlock(&lock);
}

static bool slot_fill(slot *s, const formula *f)
{
    s->nodes = malloc(f->count * sizeof *s->nodes);
    s->words = malloc((f->length + 1) * sizeof *s->words);
    if (!s->nodes || !s->words) {
        free(s->nodes);
        free(s->words);
        s->nodes = NULL;
        s->words = NULL;
        return false;
    }
    memcpy(s->nodes, f->nodes, f->count * sizeof *s->nodes);
    memcpy(s->words, f->words, f->length * sizeof *s->words);
    uint32_t word = f->nodes[0].word;
    for (uint32_t i = 0; i < f->count; i++) {
        s->nodes[i].word -= word;
        s->nodes[i].first = 0;
    }
    s->count = f->count;
    s->length = f->length;
    return true;
}

duet_status held_store(const formula *f, duet_expr *e)
{
    const uint32_t i = slot_take();
    if (!i) return fail(DUET_NO_MEMORY, "duet_hold: out of memory for another persistent formula");
    slot *s = slot_at(i);
    if (!slot_fill(s, f)) {
        slot_give(i);
        return fail(DUET_NO_MEMORY, "duet_hold: out of memory for a formula of %u nodes", f->count);
    }
    const uint64_t generation = s->generation + 1;
    __atomic_store_n(&s->generation, generation, __ATOMIC_RELEASE);
    *e = handle(i, generation);
    return DUET_OK;
}

duet_status held_drop(duet_expr e, const char *site)
{
    slot *s = slot_find(e);
    if (!s) return held_missing(e, "duet_drop: e");
    __atomic_store_n(&s->generation, s->generation + 1, __ATOMIC_RELEASE);
    free(s->nodes);
    free(s->words);
    s->nodes = NULL;
    s->words = NULL;
    s->dropped = site;
    slot_give((uint32_t)(e.serial & ((1u << SLOT_BITS) - 1)));
    return DUET_OK;
}
