/* repeat.c - automatic replay: a thread's statements on the GPU are watched until they repeat, then learnt as refrains, and followed.
 *
 * Watching. Of each statement that runs a token is kept: a hash of all that it is. Where the host waits, or gives the queue work
 * otherwise, stands a token of its own, CUT: nothing is held back across it. Tokens that were the same as those a period before, for two
 * periods on end, are taken to go on so.
 * Learning. The next period's statements are recorded as they run, each part between two CUTs as a refrain.
 * Following. A statement that begins a refrain is held back, and so are those that follow as they should. The last one launches them all;
 * another statement, or whoever wants to see what they do, launches those that are there. A refrain that breaks off too often is
 * forgotten, and its period not learnt again. */
#include "matrix.h"
#include "refrain.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

#define PERIOD_MAX 128 /* tokens */
#define HISTORY    256
#define LEAST      8  /* tokens that must have repeated, however short the period */
#define REFRAINS   16 /* a thread's, at most */
#define FRUITLESS  16 /* periods that are remembered as not worth learning */
#define CREDIT     8  /* of a refrain at first; */
#define CREDIT_MAX 32
#define BREAK      4 /* what it loses by breaking off, where completion gains one */
#define CUT        1 /* no hash of a statement is that small */

typedef struct repeats {
    uint64_t token[HISTORY], count; /* the latest; how many there ever were */
    uint64_t latest[HISTORY];       /* by a token's hash, one past where it last stood */
    int period, run;                /* that many tokens repeated those a period before; 0: none */
    uint64_t fruitless[FRUITLESS];
    unsigned n_fruitless;
    int left;        /* tokens of the period still to be learnt; 0: nothing is learnt */
    bool waits;      /* for a CUT, to begin with it */
    refrain *learnt; /* what is being recorded, or NULL */
    refrain *refrains[REFRAINS];
    uint64_t uses;
    refrain *now;  /* what is followed, or NULL */
    int at;        /* its next statement */
    refrain *next; /* what was followed last: likely the next again */
} repeats;

/* ---- tokens ---- */

static uint64_t mix(uint64_t h, uint64_t w)
{
    const __uint128_t m = (__uint128_t)(h ^ w) * 0xd6e8feb86659fd93u;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t mix_number(uint64_t h, double x)
{
    uint64_t w;
    return memcpy(&w, &x, sizeof w), mix(h, w);
}

static uint64_t token_of(const plan *p, const statement *s)
{
    uint64_t h = p->number;
    for (int k = 0; k < s->count; k++) h = mix(h, s->to[k].m->serial);
    for (int i = 0; i < p->n_leaves; i++) h = mix(h, s->f->nodes[p->leaves[i].node].matrix_serial);
    for (int i = 0; i < p->n_numbers; i++)
        if (p->numbers[i].node >= 0) h = mix_number(h, s->f->nodes[p->numbers[i].node].number);
    return h | 2;
}

static uint64_t *token_at(repeats *a, uint64_t n) { return &a->token[n % HISTORY]; }

static int distance(repeats *a, uint64_t token)
{
    const uint64_t n = a->count, before = a->latest[token / 4 % HISTORY];
    return before && n + 1 - before <= PERIOD_MAX && *token_at(a, before - 1) == token ? (int)(n + 1 - before) : 0;
}

static bool repeats_period(repeats *a, uint64_t token)
{
    return a->period && *token_at(a, a->count - (uint64_t)a->period) == token;
}

static void observe(repeats *a, uint64_t token)
{
    if (repeats_period(a, token)) a->run++;
    else a->period = distance(a, token), a->run = a->period > 0;
    *token_at(a, a->count++) = token;
    a->latest[token / 4 % HISTORY] = a->count;
}

/* ---- refrains that there are ---- */

static void forget(repeats *a, refrain *r)
{
    for (int i = 0; i < REFRAINS; i++)
        if (a->refrains[i] == r) a->refrains[i] = NULL;
    if (a->next == r) a->next = NULL;
    refrain_free(r);
}

static void forget_all(repeats *a)
{
    for (int i = 0; i < REFRAINS; i++) refrain_free(a->refrains[i]), a->refrains[i] = NULL;
    refrain_free(a->learnt);
    a->learnt = a->next = a->now = NULL, a->at = a->left = 0;
}

static int oldest(const repeats *a)
{
    int best = 0;
    for (int i = 0; i < REFRAINS; i++) {
        if (!a->refrains[i]) return i;
        if (a->refrains[i]->last_use < a->refrains[best]->last_use) best = i;
    }
    return best;
}

static void enter(repeats *a, refrain *r)
{
    const int i = oldest(a);
    if (a->refrains[i]) forget(a, a->refrains[i]);
    a->refrains[i] = r, r->last_use = ++a->uses, r->credit = CREDIT;
}

static void shun(repeats *a, uint64_t period) { a->fruitless[a->n_fruitless++ % FRUITLESS] = period; }

static bool is_shunned(const repeats *a, uint64_t period)
{
    for (int i = 0; i < FRUITLESS; i++)
        if (a->fruitless[i] == period) return true;
    return false;
}

/* ---- learning ---- */

/* The same wherever in it one begins. */
static uint64_t name_period(repeats *a, bool *has_cut)
{
    uint64_t sum = 0;
    *has_cut = false;
    for (int i = 1; i <= a->period; i++) {
        const uint64_t t = *token_at(a, a->count - (uint64_t)i);
        sum += t, *has_cut |= t == CUT;
    }
    return sum;
}

/* Has a period been repeated often enough? Then it is learnt from here on, or from the next CUT. */
static void consider(repeats *a)
{
    bool has_cut;
    if (a->run < 2 * a->period || a->run < LEAST) return;
    const uint64_t name = name_period(a, &has_cut);
    a->run = 0;
    if (is_shunned(a, name)) return;
    a->left = a->period, a->waits = has_cut && *token_at(a, a->count - 1) != CUT;
}

static void end_refrain(repeats *a)
{
    bool has_cut;
    refrain *r = a->learnt;
    a->learnt = NULL;
    if (!r) return;
    r->period = name_period(a, &has_cut);
    if (refrain_close(r)) {
        TRACE("%d statements repeat: they are launched together from here on", r->of.count);
        enter(a, r);
    } else {
        shun(a, r->period);
        refrain_free(r);
    }
}

static void end_learning(repeats *a)
{
    end_refrain(a);
    a->left = 0, a->run = 0;
}

static void learn_no_more(repeats *a)
{
    refrain_free(a->learnt);
    a->learnt = NULL, a->left = 0, a->run = 0;
}

static void one_learnt(repeats *a)
{
    if (--a->left == 0) end_learning(a);
}

static void note_cut(repeats *a)
{
    if (a->count && *token_at(a, a->count - 1) == CUT) return;
    const bool expected = repeats_period(a, CUT);
    observe(a, CUT);
    if (!a->left) return;
    if (!expected) learn_no_more(a);
    else if (a->waits) a->waits = false;
    else end_refrain(a), one_learnt(a);
}

/* What refrains keep is given up before a statement fails for want of it. */
static duet_status run_at_once(repeats *a, const plan *p, const statement *s)
{
    const duet_status st = plan_run(p, s);
    if (__builtin_expect(st != DUET_NO_MEMORY, 1)) return st;
    forget_all(a);
    return plan_run(p, s);
}

static duet_status add(repeats *a, uint64_t token, const plan *p, const statement *s)
{
    bool added = false;
    if (!a->learnt && (a->learnt = refrain_new())) a->learnt->first = token;
    if (!a->learnt) return learn_no_more(a), plan_run(p, s);
    const duet_status st = refrain_add(a->learnt, p, s, &added);
    if (added) return one_learnt(a), st;
    learn_no_more(a);
    return st == DUET_NO_MEMORY ? run_at_once(a, p, s) : st;
}

/* ---- following ---- */

static void stop(repeats *a, bool broke)
{
    refrain *r = a->now;
    a->next = r, a->now = NULL, a->at = 0;
    r->credit += broke ? -BREAK : r->credit < CREDIT_MAX;
    if (r->credit >= 0) return;
    TRACE("%d statements do not repeat any more", r->of.count);
    shun(a, r->period), forget(a, r);
}

static duet_status launch_own(void) { return held_launch(1ull << thread_get()->queue); }

static duet_status break_off(repeats *a)
{
    const duet_status s = launch_own();
    stop(a, true);
    return s;
}

/* It can never run again. */
static duet_status drop_moved(repeats *a)
{
    const duet_status s = launch_own();
    forget(a, a->now);
    a->now = NULL, a->at = 0;
    return s;
}

/* The refrain that begins so: mostly that of the last time. */
static refrain *find(repeats *a, const plan *p, const statement *s)
{
    if (a->next && refrain_has(a->next, 0, p, s)) return a->next;
    const uint64_t token = token_of(p, s);
    for (int i = 0; i < REFRAINS; i++) {
        refrain *r = a->refrains[i];
        if (r && r->first == token && refrain_has(r, 0, p, s)) return r;
    }
    return NULL;
}

/* *held: it is, or it has failed. */
static duet_status follow(repeats *a, refrain *r, const statement *s, bool *held)
{
    a->now = r;
    const duet_status st = refrain_hold(r, a->at, s, held);
    if (st != DUET_OK) return *held = true, st;
    if (!*held) return drop_moved(a);
    if (++a->at < r->of.count) return DUET_OK;
    const duet_status launched = launch_own();
    r->last_use = ++a->uses;
    stop(a, r->broken);
    return launched;
}

/* ---- statements ---- */

static void leave(void *mine)
{
    (void)held_cut();
    forget_all(mine), free(mine);
}

static repeats *of_thread(void)
{
    thread *t = thread_get();
    if (t->room[ROOM_REPEATS] || t->shared) return t->room[ROOM_REPEATS];
    t->leave[ROOM_REPEATS] = leave;
    return t->room[ROOM_REPEATS] = calloc(1, sizeof(repeats));
}

static duet_status watch(repeats *a, const plan *p, const statement *s)
{
    const uint64_t token = token_of(p, s);
    const bool expected = repeats_period(a, token);
    observe(a, token);
    if (a->left && !expected) learn_no_more(a);
    if (a->left && !a->waits) return add(a, token, p, s);
    if (!a->left) consider(a);
    return run_at_once(a, p, s);
}

static void take_cut(repeats *a)
{
    thread_get()->cut = false;
    if (a->now) stop(a, a->at > 0);
    note_cut(a);
}

static duet_status begin_or_watch(repeats *a, const plan *p, const statement *s)
{
    bool held = false;
    refrain *r = a->left ? NULL : find(a, p, s);
    if (!r) return watch(a, p, s);
    note_cut(a);
    const duet_status st = follow(a, r, s, &held);
    return held || st != DUET_OK ? st : watch(a, p, s);
}

duet_status repeat_run(const plan *p, const statement *s)
{
    thread *t = thread_get();
    repeats *a = t->holding ? of_thread() : NULL;
    if (!p->count) return DUET_OK;
    if (t->cut && a) take_cut(a);
    if (!a) TRY(held_cut());
    if (!a) return plan_run(p, s);
    if (a->now && refrain_has(a->now, a->at, p, s)) {
        bool held;
        const duet_status st = follow(a, a->now, s, &held);
        if (held) return st;
        TRY(st);
    } else if (a->now) {
        TRY(break_off(a));
        note_cut(a);
    }
    return begin_or_watch(a, p, s);
}

duet_status duet_auto_replay(int on)
{
    thread *t = thread_get();
    if (on != 0 && on != 1) return fail(DUET_BAD_ARGUMENT, "duet_auto_replay(%d) needs 0 or 1", on);
    const duet_status s = held_cut();
    repeats *a = t->room[ROOM_REPEATS];
    if (a && !on) forget_all(a);
    t->holding = on ? HOLDS_AS_TOLD : HOLDS_NOT;
    return s;
}
