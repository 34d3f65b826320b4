/* arena.c - the arena that holds a thread's formulas. It makes handles, tracks roots, and frees
 * formulas that were consumed (spent). */
#define _GNU_SOURCE
#include "arena.h"
#include "status.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LIMIT_DEFAULT ((size_t)64 << 20)
/* an upper bound of the words of a node */
#define WORDS_MOST ((uint32_t)sizeof(((thread *)0)->text) / 4 + 2 + 4 * DUET_RANK_MAX)

/* The next range of serial numbers. Range 0 is for handles without a node. Persistent formulas use the
 * upper half of all serial numbers, which the ranges never reach. */
static atomic_uint_fast64_t ranges = 1;

static void arena_unmap(arena *a)
{
    if (a->mapped) munmap(a->nodes, a->mapped);
    a->nodes = NULL;
    a->mapped = 0;
}

static void arena_free(void *p)
{
    arena *a = p;
    if (!a) return;
    arena_free(a->scratch);
    free(a->gradients);
    arena_unmap(a);
    free(a);
}

static uint32_t at_most(size_t n) { return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX; }

/* Reserves address space for `limit` bytes, half for nodes and half for words. The system allocates
 * pages when they are first used. */
static bool arena_map(arena *a)
{
    size_t half = a->limit / 2;
    void *p =
        mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    a->mapped = 2 * half;
    a->nodes = p;
    a->count_max = at_most(half / sizeof(node));
    a->words = (uint32_t *)((char *)p + half);
    a->length_max = at_most(half / sizeof(uint32_t)) - WORDS_MOST;
    a->stop = a->next;
    return true;
}

static arena *arena_new(size_t limit)
{
    arena *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->limit = limit;
    if (arena_map(a)) return a;
    free(a);
    return NULL;
}

static void arena_leave(void *a)
{
    thread_get()->slot[SLOT_ARENA] = NULL;
    arena_free(a);
}

/* Gives this thread another arena, or none. */
static void move_to(arena *a)
{
    thread *t = thread_get();
    t->slot[SLOT_ARENA] = a;
    t->leave[SLOT_ARENA] = arena_leave;
}

arena *arena_first(void)
{
    arena *a = thread_get()->shared ? NULL : arena_new(LIMIT_DEFAULT);
    if (!a) {
        fail(DUET_NO_MEMORY, "out of memory for formulas");
        return NULL;
    }
    move_to(a);
    return a;
}

void *formulas_apart(void)
{
    arena *own = arena_here();
    if (own) move_to(NULL);
    return own;
}

void formulas_back(void *own)
{
    if (arena_here() == own) return;
    arena_free(arena_here());
    move_to(own);
}

void arena_clear(arena *a)
{
    a->count = a->length = a->roots = a->last_leaf = a->last_number = 0;
    a->mixed = false;
}

arena *arena_scratch(arena *a)
{
    if (a->scratch && a->scratch->limit != a->limit) {
        arena_free(a->scratch);
        a->scratch = NULL;
    }
    if (!a->scratch) a->scratch = arena_new(a->limit);
    if (a->scratch) arena_clear(a->scratch);
    else fail(DUET_NO_MEMORY, "out of memory for formulas");
    return a->scratch;
}

duet_status(duet_arena_limit)(size_t bytes)
{
    if (bytes < 4096)
        return fail(DUET_BAD_ARGUMENT, "duet_arena_limit: bytes (%zu) must be at least 4096", bytes);
    arena *a = arena_mine();
    if (!a) return DUET_NO_MEMORY;
    if (a->count)
        return fail(DUET_BAD_ARGUMENT, "duet_arena_limit: this thread has %u unevaluated formulas", a->roots);
    size_t before = a->limit;
    arena_unmap(a);
    a->limit = bytes / 4096 * 4096;
    if (arena_map(a)) return DUET_OK;
    a->limit = before;
    if (!arena_map(a)) {
        move_to(NULL);
        arena_free(a);
    }
    return fail(DUET_NO_MEMORY, "duet_arena_limit: no address space for %zu bytes", bytes);
}

/* ---- handles ---- */

node *arena_search(const arena *a, uint64_t serial)
{
    uint32_t low = 0, high = a->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (a->nodes[mid].serial < serial) low = mid + 1;
        else high = mid;
    }
    return low < a->count && a->nodes[low].serial == serial ? &a->nodes[low] : NULL;
}

static const spending *find_spending(const arena *a, uint64_t serial)
{
    for (uint32_t i = 0; i < SPENDINGS && i < a->spendings; i++) {
        const spending *s = &a->spent[(a->spendings - 1 - i) % SPENDINGS];
        if (s->low <= serial && serial <= s->high) return s;
    }
    return NULL;
}

static bool is_mine(const arena *a, uint64_t serial)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->nodes[i].serial >> 32 == serial >> 32) return true;
    return serial >> 32 == a->last >> 32 || find_spending(a, serial);
}

/* Reports a failure that has no node. If it is the latest failure, restores its text. */
static duet_status say_again(const arena *a, duet_status s, const char *what)
{
    if (s == a->refused) {
        error_put_back(&a->why_refused);
        return s;
    }
    return fail(s, "%s: %s", what, duet_status_text(s));
}

duet_status arena_refuses(arena *a, duet_status s)
{
    a->refused = s;
    error_keep(&a->why_refused);
    return s;
}

duet_status arena_missing(const arena *a, duet_expr e, const char *what)
{
    if (e.serial == 0) return fail(DUET_BAD_ARGUMENT, "%s is not a formula", what);
    if (e.serial < DUET_STATUS_COUNT) return say_again(a, (duet_status)e.serial, what);
    if (!is_mine(a, e.serial)) return fail(DUET_FOREIGN, "%s was built by another thread", what);
    const spending *spent = find_spending(a, e.serial);
    if (spent && spent->why != DUET_OK) return say_again(a, spent->why, what);
    const char *site = spent ? spent->site : NULL;
    if (site) return fail(DUET_SPENT, "%s was already evaluated or dropped at %s", what, site);
    return fail(DUET_SPENT, "%s was already evaluated or dropped", what);
}

static const char *oldest_site(const arena *a)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->nodes[i].site) return a->nodes[i].site;
    return "an unknown place";
}

bool arena_refill(arena *a)
{
    if (a->count == a->count_max || a->length > a->length_max) {
        fail(DUET_ARENA_FULL,
             "%u formulas are unevaluated, the oldest from %s; they fill the limit of %zu bytes", a->roots,
             oldest_site(a), a->limit);
        arena_refuses(a, DUET_ARENA_FULL);
        return false;
    }
    if (a->next == a->last) {
        a->next = atomic_fetch_add(&ranges, 1) << 32;
        a->last = a->next + (SERIAL_FIRST - 1);
    }
    const uint64_t serials = a->last - a->next, nodes = a->count_max - a->count,
                   words = (a->length_max - a->length) / WORDS_MOST + 1;
    const uint64_t least = nodes < words ? nodes : words;
    a->stop = a->next + (least < serials ? least : serials);
    return true;
}

/* Marks all nodes below those from `first` on, and before `end`, that are marked. */
static void mark_operands(const node *src, uint32_t first, uint32_t end, bool *needed)
{
    for (uint32_t i = end; i-- > first;)
        if (needed[i - first] && src[i].op != OP_NUMBER)
            for (int k = 0; k < 3 && src[i].back[k]; k++) needed[i - src[i].back[k] - first] = true;
}

/* ---- spending ---- */

static void note_spending(arena *a, const node *n, const char *site)
{
    a->spent[a->spendings++ % SPENDINGS] = (spending){ a->nodes[n->first].serial, n->serial, site, DUET_OK };
}

static void set_spent(node *n)
{
    n->kind = (n->kind & ~KIND(0, 0, 0, NODE_PLAIN)) | KIND(0, 0, 0, NODE_SPENT);
}

/* Marks all nodes of a formula as spent. Operands are before their operator, so one pass from the
 * root to the first node suffices. */
static void mark_spent(arena *a, uint32_t root)
{
    uint32_t first = a->nodes[root].first;
    set_spent(&a->nodes[root]);
    for (uint32_t i = root + 1; i-- > first;) {
        const node *n = &a->nodes[i];
        if (n->flags & NODE_SPENT)
            for (int k = 0; k < 3 && n->back[k]; k++) set_spent(&a->nodes[i - n->back[k]]);
    }
}

/* Returns the latest node of a list that still exists. `last` is the end of the list, and each node
 * has the distance to the one before it. */
static uint32_t still_there(const arena *a, uint32_t last)
{
    while (last > a->count) {
        const uint32_t before = a->nodes[last - 1].before;
        last = before ? last - before : 0;
    }
    return last;
}

/* Removes spent nodes from the end of the arena. They cannot be part of a live formula, because no
 * live node follows them. */
static void pop(arena *a)
{
    while (a->count && a->nodes[a->count - 1].flags & NODE_SPENT) a->length = a->nodes[--a->count].word;
    a->last_leaf = still_there(a, a->last_leaf);
    a->last_number = still_there(a, a->last_number);
    a->mixed = a->count > 0;
}

/* ---- nodes that belong to no unevaluated formula, as gradients leave them ---- */

#define COLLECT_FROM 4096

/* The next time, there must be twice as many nodes as now stay. */
static __attribute__((noinline, cold)) void collect(arena *a)
{
    bool *needed = calloc((size_t)a->count + 1, sizeof *needed);
    if (!needed) return;
    for (uint32_t i = 0; i < a->count; i++)
        needed[i] = (a->nodes[i].flags & (NODE_ROOT | NODE_SPENT)) == NODE_ROOT;
    mark_operands(a->nodes, 0, a->count, needed);
    for (uint32_t i = 0; i < a->count; i++)
        if (!needed[i]) set_spent(&a->nodes[i]);
    free(needed);
    pop(a);
    a->collect_from = a->count < COLLECT_FROM / 2 ? COLLECT_FROM : 2 * a->count;
}

void arena_spend(arena *a, node *n, const char *site)
{
    note_spending(a, n, site);
    consume(a, n);
    if (!a->roots) {
        arena_clear(a);
        return;
    }
    mark_spent(a, (uint32_t)(n - a->nodes));
    pop(a);
    if (unlikely(a->count > a->collect_from && a->count > COLLECT_FROM)) collect(a);
}

void arena_give_up(arena *a, node *n, duet_status why, const char *site)
{
    arena_spend(a, n, site);
    a->spent[(a->spendings - 1) % SPENDINGS].why = why;
}

/* ---- copying ---- */

/* needed[i - first]: does the formula src[root] have node i? Those are set; others are not changed. */
void arena_mark(const node *src, uint32_t first, uint32_t root, bool *needed)
{
    needed[root - first] = true;
    mark_operands(src, first, root + 1, needed);
}

/* Copies node n. moved[0] belongs to n; for a node that was copied, `moved` has its new index plus 1. */
static node *copy_node(arena *to, const node *n, const uint32_t *words, const uint32_t *moved)
{
    node *c =
        arena_push(to, n->kind & KIND(0xff, 0xff, 0xff, ~(unsigned)(NODE_SPENT | NODE_ROOT) & 0xff), n->site);
    if (!c) return NULL;
    uint32_t at = (uint32_t)(c - to->nodes);
    c->attr = n->attr;
    memcpy(c->size, n->size, sizeof c->size);
    for (int k = 0; k < 3; k++) c->back[k] = 0;
    for (int k = 0; k < 3 && n->back[k] && n->op != OP_NUMBER; k++) {
        uint32_t x = *(moved - n->back[k]) - 1;
        c->back[k] = at - x;
        if (to->nodes[x].first < c->first) c->first = to->nodes[x].first;
        consume(to, &to->nodes[x]);
    }
    words_put(to, c, words + n->word);
    return c;
}

static node *copy_needed(arena *to, const node *src, const uint32_t *words, uint32_t first, uint32_t root,
                         const bool *needed, uint32_t *moved)
{
    node *c = NULL;
    for (uint32_t i = first; i <= root; i++) {
        if (!needed[i - first] || (moved[i - first] && i < root)) continue;
        c = copy_node(to, &src[i], words, &moved[i - first]);
        if (!c) return NULL;
        moved[i - first] = (uint32_t)(c - to->nodes) + 1;
    }
    return c;
}

duet_status arena_copy_more(arena *to, const node *src, const uint32_t *words, uint32_t first, uint32_t root,
                            const bool *needed, uint32_t *moved, node **copy)
{
    const arena before = *to;
    *copy = copy_needed(to, src, words, first, root, needed, moved);
    if (*copy) return DUET_OK;
    to->count = before.count;
    to->length = before.length;
    to->roots = before.roots;
    to->last_leaf = before.last_leaf;
    to->last_number = before.last_number;
    return DUET_ARENA_FULL;
}

duet_status arena_copy(arena *to, const node *src, const uint32_t *words, uint32_t root, node **copy)
{
    const uint32_t first = src[root].first, count = root - first + 1;
    uint32_t *moved = calloc(count, sizeof *moved + sizeof(bool));
    if (!moved) return fail(DUET_NO_MEMORY, "out of memory to copy a formula of %u nodes", count);
    bool *needed = (bool *)(moved + count);
    arena_mark(src, first, root, needed);
    const duet_status s = arena_copy_more(to, src, words, first, root, needed, moved, copy);
    free(moved);
    return s;
}
