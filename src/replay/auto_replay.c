/* auto_replay.c - automatic replay: a thread's statements on the GPU are watched until they repeat, then learnt as refrains, and followed.
 *
 * Watching. Of each statement that runs a token is kept, a hash of all that it is but its numbers, and those as its detail. Where the host waits, or gives the queue work
 * otherwise, stands a token of its own, CUT: nothing is held back across it. Tokens that were the same as those a period before, for two
 * periods on end, are taken to go on so.
 * Learning. The next period's statements are recorded as they run, each part between two CUTs as a captured_sequence. A statement whose
 * numbers are others each time is no part of any.
 * Following. A statement that begins a captured_sequence is held back, and so are those that follow as they should. The last one launches them all;
 * another statement, or whoever wants to see what they do, launches those that are there. A captured_sequence that breaks off too often, or takes
 * longer to say than it spares, is forgotten, and its period not learnt again. */
#include "auto_replay.h"
#include "captured_sequence.h"
#include "clock.h"
#include "period_detector.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

#define CUT        1  /* no token of a statement is that small */
#define LEAST      8  /* tokens that must have repeated, however short the period */
#define REFRAINS   16 /* a thread's, at most */
#define FRUITLESS  16 /* periods that are remembered as not worth learning */
#define CREDIT     8  /* of a captured_sequence at first; */
#define CREDIT_MAX 32
#define BREAK      4 /* what it loses when it is of no use; else it gains one */

typedef struct repeats {
    history said;
    uint64_t fruitless[FRUITLESS];
    unsigned n_fruitless;
    int left;                  /* tokens of the period still to be learnt; 0: nothing is learnt */
    bool waits;                /* for a CUT, or a statement that varies, to begin behind it */
    bool gained;               /* a captured_sequence of this period */
    captured_sequence *learnt; /* what is being recorded, or NULL */
    captured_sequence *refrains[REFRAINS];
    uint64_t uses;
    captured_sequence *now;  /* what is followed, or NULL */
    int at;                  /* its next statement */
    double since;            /* when the first one was held back */
    captured_sequence *next; /* what was followed last: likely the next again */
} repeats;

static double patience =
    5e-6; /* how long the statements of a captured_sequence may take to be said, for each launch that it has */

void auto_replay_patience(double seconds) { patience = seconds; }

static duet_status launch_own(void) { return deferred_launch(1ull << thread_get()->queue); }

/* ---- tokens ---- */

static uint64_t mix(uint64_t h, uint64_t w)
{
    const __uint128_t m = (__uint128_t)(h ^ w) * 0xd6e8feb86659fd93u;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t mix_number(uint64_t h, double x)
{
    uint64_t w;
    memcpy(&w, &x, sizeof w);
    return mix(h, w);
}

static uint64_t token_of(const plan *p, const statement *s)
{
    uint64_t h = p->number;
    for (int k = 0; k < s->count; k++) h = mix(h, s->to[k].m->serial);
    for (int i = 0; i < p->n_leaves; i++) h = mix(h, s->f->nodes[p->leaves[i].node].matrix_serial);
    return h | 2;
}

static uint64_t detail_of(const plan *p, const statement *s)
{
    uint64_t h = 0;
    for (int i = 0; i < p->n_numbers; i++)
        if (p->numbers[i].node >= 0) h = mix_number(h, s->f->nodes[p->numbers[i].node].number);
    return h;
}

/* ---- refrains that there are ---- */

static void forget(repeats *a, captured_sequence *r)
{
    for (int i = 0; i < REFRAINS; i++)
        if (a->refrains[i] == r) a->refrains[i] = NULL;
    if (a->next == r) a->next = NULL;
    sequence_free(r);
}

/* Were there any? */
static bool forget_all(repeats *a)
{
    bool any = a->learnt != NULL;
    for (int i = 0; i < REFRAINS; i++) {
        any |= a->refrains[i] != NULL;
        sequence_free(a->refrains[i]);
        a->refrains[i] = NULL;
    }
    sequence_free(a->learnt);
    a->learnt = a->next = a->now = NULL;
    a->at = a->left = 0;
    return any;
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

static void enter(repeats *a, captured_sequence *r)
{
    const int i = oldest(a);
    if (a->refrains[i]) forget(a, a->refrains[i]);
    a->refrains[i] = r;
    r->last_use = ++a->uses;
    r->credit = CREDIT;
}

static void shun(repeats *a, uint64_t period) { a->fruitless[a->n_fruitless++ % FRUITLESS] = period; }

static bool is_shunned(const repeats *a, uint64_t period)
{
    for (int i = 0; i < FRUITLESS; i++)
        if (a->fruitless[i] == period) return true;
    return false;
}

/* ---- learning ---- */

/* Has a period been repeated often enough? Then it is learnt from here on, or from where it is cut. */
static void consider(repeats *a)
{
    history *h = &a->said;
    if (h->run < 2 * h->period || h->run < LEAST) return;
    h->run = 0;
    if (is_shunned(a, history_name(h))) return;
    a->left = h->period;
    a->waits = history_has(h, CUT) || history_varies(h);
    a->gained = false;
}

static void end_learning(repeats *a)
{
    sequence_free(a->learnt);
    a->learnt = NULL;
    a->left = 0;
    a->said.run = 0;
}

static void end_sequence(repeats *a)
{
    captured_sequence *r = a->learnt;
    a->learnt = NULL;
    if (!r) return;
    r->period = history_name(&a->said);
    if (sequence_close(r)) {
        TRACE("%d statements repeat: they are launched together from here on", r->of.count);
        enter(a, r);
        a->gained = true;
    } else {
        sequence_free(r);
    }
}

static void one_learnt(repeats *a)
{
    if (--a->left > 0) return;
    end_sequence(a);
    if (!a->gained) shun(a, history_name(&a->said));
    end_learning(a);
}

static void note_cut(repeats *a)
{
    if (history_last(&a->said) == CUT) return;
    const bool expected = history_expects(&a->said, CUT);
    history_add(&a->said, CUT, 0);
    if (!a->left) return;
    if (!expected) end_learning(a);
    else if (a->waits) a->waits = false;
    else {
        end_sequence(a);
        one_learnt(a);
    }
}

/* Where what the first run had done stands in the way of another, its failure is told. */
static __attribute__((cold)) duet_status run_again(const plan *p, const statement *s)
{
    error_text first;
    error_keep(&first);
    const duet_status st = plan_run(p, s);
    if (st == DUET_UNKNOWN) error_put_back(&first);
    return st == DUET_UNKNOWN ? DUET_NO_MEMORY : st;
}

/* What refrains keep is given up before a statement fails for want of it. */
static duet_status run_at_once(repeats *a, const plan *p, const statement *s)
{
    const duet_status st = plan_run(p, s);
    if (__builtin_expect(st != DUET_NO_MEMORY, 1) || thread_get()->deferred_failed) return st;
    return forget_all(a) ? run_again(p, s) : st;
}

static duet_status learn(repeats *a, uint64_t token, const plan *p, const statement *s)
{
    bool added = false;
    if (!history_was_same(&a->said)) {
        end_sequence(a);
        one_learnt(a);
        return run_at_once(a, p, s);
    }
    if (!a->learnt && (a->learnt = sequence_new())) a->learnt->first = token;
    if (!a->learnt) {
        end_learning(a);
        return plan_run(p, s);
    }
    const duet_status st = sequence_add(a->learnt, p, s, &added);
    if (added) {
        one_learnt(a);
        return st;
    }
    end_learning(a);
    if (st != DUET_NO_MEMORY || thread_get()->deferred_failed) return st;
    forget_all(a);
    return run_again(p, s);
}

static duet_status watch(repeats *a, const plan *p, const statement *s)
{
    const uint64_t token = token_of(p, s);
    const bool expected = history_expects(&a->said, token);
    history_add(&a->said, token, detail_of(p, s));
    if (a->left && !expected) end_learning(a);
    if (a->left && !a->waits) return learn(a, token, p, s);
    if (!a->left) consider(a);
    else if (!history_was_same(&a->said)) a->waits = false;
    return run_at_once(a, p, s);
}

/* ---- following ---- */

/* Ends what is followed. */
static void stop(repeats *a, bool useful)
{
    captured_sequence *r = a->now;
    a->next = r;
    a->now = NULL;
    a->at = 0;
    r->credit += useful ? r->credit < CREDIT_MAX : -BREAK;
    if (r->credit >= 0) return;
    TRACE("%d statements are not launched together any more", r->of.count);
    shun(a, r->period);
    forget(a, r);
}

static duet_status break_off(repeats *a)
{
    const duet_status s = launch_own();
    stop(a, false);
    note_cut(a);
    return s;
}

/* A matrix of it lies elsewhere now: it can never run again. */
static duet_status drop_moved(repeats *a)
{
    captured_sequence *r = a->now;
    const duet_status s = launch_own();
    a->now = NULL;
    a->at = 0;
    forget(a, r);
    return s;
}

static duet_status complete(repeats *a)
{
    captured_sequence *r = a->now;
    const duet_status s = launch_own();
    r->last_use = ++a->uses;
    stop(a, !r->broken && !(clock_now() - a->since > patience * (double)r->all.launches));
    return s;
}

/* The captured_sequence that begins so: mostly that of the last time. */
static captured_sequence *find(const repeats *a, const plan *p, const statement *s)
{
    if (a->next && sequence_has(a->next, 0, p, s)) return a->next;
    const uint64_t token = token_of(p, s);
    for (int i = 0; i < REFRAINS; i++) {
        captured_sequence *r = a->refrains[i];
        if (r && r->first == token && sequence_has(r, 0, p, s)) return r;
    }
    return NULL;
}

static bool begins(repeats *a, const plan *p, const statement *s)
{
    a->now = a->left ? NULL : find(a, p, s);
    if (!a->now) return false;
    a->since = clock_now();
    note_cut(a);
    return true;
}

/* *held: it is; else it is still to be run. */
static duet_status follow(repeats *a, const statement *s, bool *held)
{
    TRY(sequence_defer(a->now, a->at, s, held));
    if (!*held) return drop_moved(a);
    return ++a->at < a->now->of.count ? DUET_OK : complete(a);
}

/* ---- statements ---- */

static void leave(void *mine)
{
    (void)launch_own();
    forget_all(mine);
    free(mine);
}

static repeats *of_thread(void)
{
    thread *t = thread_get();
    if (!t->holding || t->shared) return NULL;
    if (t->room[ROOM_REPEATS]) return t->room[ROOM_REPEATS];
    t->leave[ROOM_REPEATS] = leave;
    return t->room[ROOM_REPEATS] = calloc(1, sizeof(repeats));
}

static void take_cut(repeats *a)
{
    thread_get()->cut = false;
    if (a->now) stop(a, a->at == 0);
    note_cut(a);
}

static duet_status repeat(repeats *a, const plan *p, const statement *s, bool *own)
{
    bool held = false;
    *own = false;
    if (thread_get()->cut) take_cut(a);
    if (a->now && !sequence_has(a->now, a->at, p, s)) TRY(break_off(a));
    if (a->now || begins(a, p, s)) TRY(follow(a, s, &held));
    *own = true;
    return held ? DUET_OK : watch(a, p, s);
}

duet_status auto_replay_run(const plan *p, const statement *s, bool *own)
{
    repeats *a = of_thread();
    *own = false;
    if (!p->count) return DUET_OK;
    if (__builtin_expect(a != NULL, 1)) return repeat(a, p, s, own);
    TRY(deferred_flush());
    *own = true;
    return plan_run(p, s);
}

duet_status duet_auto_replay(int on)
{
    thread *t = thread_get();
    if (on != 0 && on != 1) return fail(DUET_BAD_ARGUMENT, "duet_auto_replay(%d) needs 0 or 1", on);
    const duet_status s = deferred_flush();
    if (!on && t->room[ROOM_REPEATS]) forget_all(t->room[ROOM_REPEATS]);
    t->holding = on ? HOLDS_AS_TOLD : HOLDS_NOT;
    return s;
}
