/* test_forward_threads.c - several threads run a network forward at once, each on its own batch,
 * all with the same weights: statement by statement, by automatic replay and from recordings, on
 * each machine. Each gets the bits that one thread alone gets, with small integers. It is also
 * meant for the thread sanitizer. */
#include "auto_replay.h"
#include "common.h"
#include "plan.h"
#include <pthread.h>

enum { THREADS = 6, TURNS = 24, BATCH = 5, IN = 12, HIDDEN = 9, OUT = 4, LAYERS = 3 };
enum mode { DIRECT, AUTOMATIC, REPLAYED, MODES };
static const char *const mode_names[MODES] = { "statement by statement", "by automatic replay",
                                               "from recordings" };
static const int64_t widths[LAYERS + 1] = { IN, HIDDEN, HIDDEN, OUT };

typedef struct network {
    duet_matrix *w[LAYERS], *b[LAYERS];
} network;

typedef struct worker {
    pthread_t thread;
    const network *net;
    duet_place place;
    enum mode mode;
    int number;
    duet_matrix *x[LAYERS + 1];
    float out[TURNS][BATCH * OUT];
} worker;

static void set_all(duet_matrix *m, int64_t seed)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = (float)((i * 7 + seed * 13) % 5 - 2);
}

static void open_network(network *n)
{
    for (int l = 0; l < LAYERS; l++) {
        n->w[l] = duet_new(DUET_F32, widths[l], widths[l + 1]);
        n->b[l] = duet_new(DUET_F32, widths[l + 1]);
        set_all(n->w[l], l);
        set_all(n->b[l], l + 10);
    }
}

static void close_network(network *n)
{
    for (int l = 0; l < LAYERS; l++) {
        duet_free(&n->w[l]);
        duet_free(&n->b[l]);
    }
}

static duet_status forward(const worker *k)
{
    duet_status s = DUET_OK;
    for (int l = 0; l < LAYERS && s == DUET_OK; l++)
        s = duet_set(k->x[l + 1], duet_relu(duet_bias_add(duet_matmul(k->x[l], k->net->w[l]), k->net->b[l])));
    return s;
}

static duet_recording *record(const worker *k)
{
    if (k->mode != REPLAYED) return NULL;
    CHECK(duet_record_begin() == DUET_OK && forward(k) == DUET_OK, "%s", duet_error());
    duet_recording *r = duet_record_end();
    CHECK(r, "%s", duet_error());
    return r;
}

static void *work(void *arg)
{
    worker *k = arg;
    for (int l = 0; l <= LAYERS; l++) k->x[l] = duet_new(DUET_F32, BATCH, widths[l]);
    CHECK(duet_auto_replay(k->mode == AUTOMATIC) == DUET_OK, "%s", duet_error());
    DUET_ON(k->place)
    {
        duet_recording *r = record(k);
        for (int turn = 0; turn < TURNS; turn++) {
            set_all(k->x[0], turn + 100 * k->number);
            const duet_status s = r ? duet_replay(r) : forward(k);
            const float *out = duet_read(k->x[LAYERS]);
            if (CHECK(s == DUET_OK && out, "%s", duet_error()))
                memcpy(k->out[turn], out, sizeof k->out[turn]);
        }
        duet_recording_free(&r);
    }
    for (int l = 0; l <= LAYERS; l++) duet_free(&k->x[l]);
    return NULL;
}

static void all_at_once(const network *n, duet_place place, enum mode mode)
{
    static worker all[THREADS], one;
    for (int i = 0; i < THREADS; i++) {
        all[i] = (worker){ .net = n, .place = place, .mode = mode, .number = i };
        CHECK(!pthread_create(&all[i].thread, NULL, work, &all[i]), "a thread could not be created");
    }
    for (int i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        one = (worker){ .net = n, .place = place, .mode = DIRECT, .number = i };
        CHECK(!pthread_create(&one.thread, NULL, work, &one), "a thread could not be created");
        pthread_join(one.thread, NULL);
        CHECK(same_bits(DUET_F32, one.out, all[i].out, TURNS * BATCH * OUT), "thread %d has other results",
              i);
    }
}

int main(void)
{
    duet_place place[3];
    char text[100];
    int places = list_places(place);
    place[places++] = DUET_AUTO;
    auto_replay_set_max_seconds(1);
    for (int i = 0; i < places; i++)
        for (enum mode m = 0; m < MODES; m++) {
            network n;
            const uint64_t repeats = duet_stats().repeats;
            open_network(&n);
            all_at_once(&n, place[i], m);
            CHECK(m != AUTOMATIC || place[i] != DUET_GPU || duet_stats().repeats > repeats,
                  "nothing was replayed automatically");
            close_network(&n);
            snprintf(text, sizeof text, "%d threads, %s, %s", THREADS, place_name(place[i]), mode_names[m]);
            tap_point(text);
        }
    return tap_end();
}
