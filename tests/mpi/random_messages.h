/* random_messages.h - random messages between the ranks of a transport: every rank draws the same ones. */
#ifndef RANDOM_MESSAGES_H
#define RANDOM_MESSAGES_H

#include <duet/transport.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES_MOST = 40, GUARD = 64 };

typedef struct message_set {
    duet_message send[MESSAGES_MOST], receive[MESSAGES_MOST];
    int sends, receives;
    uint64_t key[2 * MESSAGES_MOST]; /* of the contents: of sends, then of receives */
} message_set;

static inline uint64_t draw(uint64_t *state) /* splitmix64 */
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Nothing, a few bytes, whole pieces, or any number of bytes. */
static inline size_t draw_bytes(uint64_t *state, size_t piece, size_t most)
{
    switch (draw(state) % 5) {
    case 0: return 0;
    case 1: return 1 + draw(state) % 16;
    case 2: return piece * (1 + draw(state) % 3) + draw(state) % 3 - 1;
    default: return draw(state) % most;
    }
}

static inline void fill_bytes(unsigned char *p, size_t bytes, uint64_t key)
{
    for (size_t i = 0; i < bytes; i++) p[i] = (unsigned char)(key + i * 167 + (i >> 8) * 13);
}

static inline duet_message new_message(int peer, size_t bytes)
{
    duet_message m = { peer, malloc(bytes + GUARD), bytes };
    memset(m.data, 0xab, bytes + GUARD);
    return m;
}

static inline message_set draw_messages(uint64_t *state, int rank, int ranks, size_t piece, size_t most)
{
    message_set s = { 0 };
    for (int n = (int)(draw(state) % MESSAGES_MOST); n > 0; n--) {
        const int from = (int)(draw(state) % (unsigned)ranks), to = (int)(draw(state) % (unsigned)ranks);
        const size_t bytes = draw_bytes(state, piece, most);
        const uint64_t key = draw(state);
        if (from == rank) {
            s.key[s.sends] = key;
            s.send[s.sends] = new_message(to, bytes);
            fill_bytes(s.send[s.sends++].data, bytes, key);
        }
        if (to == rank) {
            s.key[MESSAGES_MOST + s.receives] = key;
            s.receive[s.receives++] = new_message(from, bytes);
        }
    }
    return s;
}

static inline bool message_is_right(const duet_message *m, uint64_t key)
{
    unsigned char *want = malloc(m->bytes + GUARD);
    fill_bytes(want, m->bytes, key);
    memset(want + m->bytes, 0xab, GUARD);
    const bool same = !memcmp(want, m->data, m->bytes + GUARD);
    free(want);
    return same;
}

static inline bool messages_are_right(const message_set *s)
{
    bool right = true;
    for (int i = 0; i < s->sends; i++) right &= message_is_right(s->send + i, s->key[i]);
    for (int i = 0; i < s->receives; i++)
        right &= message_is_right(s->receive + i, s->key[MESSAGES_MOST + i]);
    return right;
}

static inline void free_messages(message_set *s)
{
    for (int i = 0; i < s->sends; i++) free(s->send[i].data);
    for (int i = 0; i < s->receives; i++) free(s->receive[i].data);
}

#endif
