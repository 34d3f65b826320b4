/* communicator.c - how ranks agree before they exchange elements. */
#include "communicator.h"
#include <string.h>

/* What one or several ranks report. It is sent as bytes, so all processes must have the same layout of it. */
typedef struct opinion {
    uint64_t low, high; /* the smallest and the largest word, */
    int32_t low_rank, high_rank;
    int32_t failed; /* the lowest rank that has failed, or -1, */
    char text[480]; /* and its text */
} opinion;

static opinion own_opinion(const communicator *c, duet_status mine, uint64_t word)
{
    opinion o = { word, word, c->rank, c->rank, mine == DUET_OK ? -1 : c->rank, "" };
    if (mine != DUET_OK) strncpy(o.text, duet_error(), sizeof o.text - 1);
    return o;
}

static void join_opinion(opinion *o, const opinion *other)
{
    if (other->low < o->low || (other->low == o->low && other->low_rank < o->low_rank)) {
        o->low = other->low;
        o->low_rank = other->low_rank;
    }
    if (other->high > o->high || (other->high == o->high && other->high_rank < o->high_rank)) {
        o->high = other->high;
        o->high_rank = other->high_rank;
    }
    if (other->failed < 0 || (o->failed >= 0 && o->failed <= other->failed)) return;
    o->failed = other->failed;
    memcpy(o->text, other->text, sizeof o->text);
}

/* Makes the communicator unusable, since this rank and the others may be at different steps. */
static duet_status break_with(communicator *c, const char *text)
{
    c->broken = DUET_RANK_FAILED;
    c->told = true;
    snprintf(c->why, sizeof c->why, "%s: the group can no longer be used", text);
    return fail(DUET_RANK_FAILED, "%s", text);
}

static duet_status check_broken(const communicator *c)
{
    if (c->broken == DUET_OK) return DUET_OK;
    return fail(c->broken, "an earlier statement failed: %s", c->why);
}

static duet_status exchange(communicator *c, const duet_message *send, int sends, const duet_message *receive,
                            int receives)
{
    duet_transport_error error = { .rank = -1 };
    const duet_transport *t = &c->host;
    if (c->ranks == 1 || t->exchange(t->context, send, sends, receive, receives, c->timeout, &error))
        return DUET_OK;
    error.text[sizeof error.text - 1] = 0;
    return break_with(c, error.text);
}

duet_status communicator_exchange(communicator *c, const duet_message *send, int sends,
                                  const duet_message *receive, int receives)
{
    TRY(check_broken(c));
    return exchange(c, send, sends, receive, receives);
}

#define DIRECT 32 /* ranks */

/* Each rank sends its report to every other rank. If a rank does not answer, all others know which one. */
static duet_status tell_all(communicator *c, opinion *o)
{
    opinion mine = *o, other[DIRECT];
    duet_message send[DIRECT], receive[DIRECT];
    int k = 0;
    for (int r = 0; r < c->ranks; r++) {
        if (r == c->rank) continue;
        send[k] = (duet_message){ r, &mine, sizeof mine };
        receive[k] = (duet_message){ r, &other[k], sizeof *other };
        k++;
    }
    TRY(exchange(c, send, k, receive, k));
    for (int i = 0; i < k; i++) {
        other[i].text[sizeof other[i].text - 1] = 0;
        join_opinion(o, &other[i]);
    }
    return DUET_OK;
}

/* In round k each rank sends the reports that it has to the rank 2^k after it. After log2(ranks) rounds,
 * rounded up, each rank has the reports of all. */
static duet_status spread(communicator *c, opinion *o)
{
    for (int by = 1; by < c->ranks; by *= 2) {
        opinion mine = *o, other;
        const duet_message send = { (c->rank + by) % c->ranks, &mine, sizeof mine };
        const duet_message receive = { (c->rank - by % c->ranks + c->ranks) % c->ranks, &other,
                                       sizeof other };
        TRY(exchange(c, &send, 1, &receive, 1));
        other.text[sizeof other.text - 1] = 0;
        join_opinion(o, &other);
    }
    return DUET_OK;
}

/* If ranks run different statements, the group can no longer be used. */
static duet_status conclude(communicator *c, const opinion *o, duet_status mine)
{
    char text[200];
    if (o->failed >= 0 || o->low != o->high) c->told = true;
    if (mine != DUET_OK) return mine;
    if (o->failed >= 0) return fail(DUET_RANK_FAILED, "rank %d failed: %s", o->failed, o->text);
    if (o->low == o->high) return DUET_OK;
    snprintf(
        text, sizeof text,
        "ranks %d and %d run different statements, or the same ones with other shapes or in another order",
        o->low_rank < o->high_rank ? o->low_rank : o->high_rank,
        o->low_rank < o->high_rank ? o->high_rank : o->low_rank);
    return break_with(c, text);
}

duet_status communicator_agree(communicator *c, duet_status mine, uint64_t word)
{
    error_text own;
    if (mine == DUET_OK) TRY(check_broken(c));
    if (c->broken != DUET_OK || !c->host.exchange) return mine;
    opinion o = own_opinion(c, mine, hash_step(word, ++c->agreed));
    if (mine != DUET_OK) error_keep(&own);
    TRY((c->ranks <= DIRECT ? tell_all : spread)(c, &o));
    if (mine != DUET_OK) error_put_back(&own);
    return conclude(c, &o, mine);
}
