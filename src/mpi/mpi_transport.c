/* mpi_transport.c - exchanges the messages of a group with MPI. Messages are cut into pieces. For each rank
 * and each direction, the transport has SLOTS buffers, each with a piece that MPI sends or receives. When a
 * piece has arrived, the next one follows. No pair of ranks waits for another pair, so exchanges cannot
 * deadlock. */
#include "mpi_transport.h"
#include "clock.h"
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2, TAG = 0 };

/* The messages from one rank, or to one rank. */
typedef struct lane {
    const duet_message *next;
    int left;      /* messages from `next` on, including those of other ranks */
    size_t offset; /* of the next piece in *next */
    char *buffers; /* SLOTS buffers of one piece each, allocated when they are first used */
} lane;

/* Bytes of the caller's buffer. */
typedef struct piece {
    char *data;
    int bytes;
} piece;

typedef struct mpi_transport {
    MPI_Comm comm;
    MPI_Request duplicated;
    int ranks, rank, near_ranks, near_rank;
    int piece_bytes;
    int count; /* of requests: SLOTS for each lane */
    int active;
    lane *lanes;   /* from rank r: lanes[r]; to rank r: lanes[ranks + r] */
    piece *pieces; /* of each request */
    MPI_Request *requests;
    bool failed;
    duet_transport_error error;
    struct mpi_transport *next; /* of those that MPI may still use */
} mpi_transport;

/* ---- errors ---- */

__attribute__((format(printf, 3, 4), cold)) static bool fails(mpi_transport *m, int rank, const char *format,
                                                              ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(m->error.text, sizeof m->error.text, format, ap);
    va_end(ap);
    m->error.rank = rank;
    m->failed = true;
    return false;
}

__attribute__((cold)) static bool fails_by_mpi(mpi_transport *m, int rank, int code)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    const char *line = strrchr(text, '\n'); /* of MPICH's lines, the last one has the reason */
    line = line && line[1] ? line + 1 : text;
    if (rank < 0) return fails(m, rank, "MPI reports an error: %s", line);
    return fails(m, rank, "MPI reports an error of a message from or to rank %d: %s", rank, line);
}

/* Why this thread cannot call MPI, or NULL. */
static const char *unusable(void)
{
    int initialized = 0, finalized = 0, level = 0, main_thread = 0;
    MPI_Initialized(&initialized);
    if (!initialized) return "MPI is not initialised; call MPI_Init first";
    MPI_Finalized(&finalized);
    if (finalized) return "MPI has been finalised";
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&main_thread);
    if (level < MPI_THREAD_SERIALIZED && !main_thread)
        return "another thread has initialised MPI, without MPI_THREAD_SERIALIZED";
    return NULL;
}

/* MPICH passes an error of MPI_Test to the handler of MPI_COMM_WORLD or MPI_COMM_SELF, which by default ends
 * the process. These functions turn the handlers off, and on again. */
typedef struct handlers {
    MPI_Errhandler world, self;
} handlers;

static handlers turn_off_handlers(void)
{
    handlers h;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &h.world), MPI_Comm_get_errhandler(MPI_COMM_SELF, &h.self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    return h;
}

static void turn_on_handlers(handlers h)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, h.world), MPI_Comm_set_errhandler(MPI_COMM_SELF, h.self);
    MPI_Errhandler_free(&h.world), MPI_Errhandler_free(&h.self);
}

/* ---- waiting ---- */

/* Gives up the processor, which other ranks may need: first yields, later sleeps for a small part of the time
 * that it has waited, in seconds. */
static void rest(double waited)
{
    const double pause = waited / 16;
    if (waited < 2e-4) sched_yield();
    else nanosleep(&(struct timespec){ .tv_nsec = (long)(1e9 * (pause < 1e-3 ? pause : 1e-3)) }, NULL);
}

/* ---- pieces ---- */

static bool receives_at(const mpi_transport *m, int index) { return index / SLOTS < m->ranks; }
static int peer_at(const mpi_transport *m, int index) { return index / SLOTS % m->ranks; }
static char *buffer_at(const mpi_transport *m, int index)
{
    return m->lanes[index / SLOTS].buffers + (size_t)(index % SLOTS) * (size_t)m->piece_bytes;
}

/* The next bytes from or to this rank; none at the end. */
static piece next_piece(lane *l, int peer, int most)
{
    for (; l->left; l->left--, l->next++, l->offset = 0) {
        if (l->next->peer != peer || l->offset == l->next->bytes) continue;
        const size_t rest = l->next->bytes - l->offset;
        const piece p = { (char *)l->next->data + l->offset, rest < (size_t)most ? (int)rest : most };
        l->offset += (size_t)p.bytes;
        return p;
    }
    return (piece){ 0 };
}

/* Starts the next piece of a lane, if there is one, with this request. */
static bool start(mpi_transport *m, int index)
{
    lane *l = m->lanes + index / SLOTS;
    const int peer = peer_at(m, index);
    const piece p = next_piece(l, peer, m->piece_bytes);
    if (!p.bytes) return true;
    if (!l->buffers && !(l->buffers = malloc((size_t)m->piece_bytes * SLOTS)))
        return fails(m, -1, "no memory for the messages of rank %d", peer);
    char *buffer = buffer_at(m, index);
    int code;
    if (receives_at(m, index)) {
        code = MPI_Irecv(buffer, p.bytes, MPI_BYTE, peer, TAG, m->comm, &m->requests[index]);
    } else {
        memcpy(buffer, p.data, (size_t)p.bytes);
        code = MPI_Isend(buffer, p.bytes, MPI_BYTE, peer, TAG, m->comm, &m->requests[index]);
    }
    if (code != MPI_SUCCESS) return fails_by_mpi(m, peer, code);
    m->pieces[index] = p;
    m->active++;
    return true;
}

/* Ends a piece and starts the next one of the lane. */
static bool finish(mpi_transport *m, int index, const MPI_Status *status)
{
    m->active--;
    if (receives_at(m, index)) {
        const piece p = m->pieces[index];
        int bytes = 0;
        MPI_Get_count(status, MPI_BYTE, &bytes);
        if (bytes != p.bytes)
            return fails(m, peer_at(m, index), "rank %d sent %d bytes, and rank %d expects %d",
                         peer_at(m, index), bytes, m->rank, p.bytes);
        memcpy(p.data, buffer_at(m, index), (size_t)bytes);
    }
    return start(m, index);
}

/* ---- exchange ---- */

/* Ends the pieces that have arrived. count: how many. */
static bool advance(mpi_transport *m, int *count)
{
    *count = 0;
    for (int i = 0; i < m->count; i++) {
        if (m->requests[i] == MPI_REQUEST_NULL) continue;
        MPI_Status status;
        int done = 0;
        const int code = MPI_Test(&m->requests[i], &done, &status);
        if (code != MPI_SUCCESS) return fails_by_mpi(m, peer_at(m, i), code);
        if (done && !finish(m, i, &status)) return false;
        *count += done;
    }
    return true;
}

/* Names a rank whose message is missing before one that does not receive: that one may itself wait for the
 * former. Requests of receives come first. */
static bool fails_by_timeout(mpi_transport *m, double seconds)
{
    int index = 0;
    while (m->requests[index] == MPI_REQUEST_NULL) index++;
    const int peer = peer_at(m, index);
    return fails(m, peer, "rank %d did not answer within %g seconds", peer, seconds);
}

static bool run(mpi_transport *m, double seconds)
{
    for (double since = clock_now(); m->active;) {
        int count;
        if (!advance(m, &count)) return false;
        const double now = clock_now();
        if (count) since = now;
        else if (now - since >= seconds) return fails_by_timeout(m, seconds);
        else rest(now - since);
    }
    return true;
}

static bool begin(mpi_transport *m, const duet_message *send, int sends, const duet_message *receive,
                  int receives)
{
    for (int i = 0; i < 2 * m->ranks; i++) {
        lane *l = m->lanes + i;
        *l = i < m->ranks ? (lane){ receive, receives, 0, l->buffers } : (lane){ send, sends, 0, l->buffers };
    }
    for (int i = 0; i < m->count; i++)
        if (!start(m, i)) return false;
    return true;
}

static bool mpi_exchange(void *context, const duet_message *send, int sends, const duet_message *receive,
                         int receives, double seconds, duet_transport_error *error)
{
    mpi_transport *m = context;
    const char *why = m->failed ? NULL : unusable();
    if (why) fails(m, -1, "%s", why);
    if (!m->failed) {
        const handlers h = turn_off_handlers();
        if (begin(m, send, sends, receive, receives)) run(m, seconds);
        turn_on_handlers(h);
    }
    if (m->failed) *error = m->error;
    return !m->failed;
}

/* ---- making and closing ---- */

static void release(mpi_transport *m)
{
    for (int i = 0; m->lanes && i < 2 * m->ranks; i++) free(m->lanes[i].buffers);
    free(m->lanes), free(m->pieces), free(m->requests);
    free(m);
}

/* Keeps a transport that MPI may still use. */
static void abandon(mpi_transport *m)
{
    static mpi_transport *abandoned;
    m->next = __atomic_exchange_n(&abandoned, m, __ATOMIC_ACQ_REL);
}

static void mpi_close(void *context, bool failed)
{
    mpi_transport *m = context;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) {
        if (failed || m->failed || unusable()) {
            abandon(m);
            return;
        }
        MPI_Comm_free(&m->comm);
    }
    release(m);
}

static mpi_transport *allocate(int ranks, int piece_bytes)
{
    mpi_transport *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    const size_t lanes = 2 * (size_t)ranks, count = lanes * SLOTS;
    m->comm = MPI_COMM_NULL;
    m->ranks = ranks, m->piece_bytes = piece_bytes, m->count = (int)count;
    m->lanes = calloc(lanes, sizeof *m->lanes);
    m->pieces = calloc(count, sizeof *m->pieces);
    m->requests = calloc(count, sizeof *m->requests);
    if (!m->lanes || !m->pieces || !m->requests) {
        release(m);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) m->requests[i] = MPI_REQUEST_NULL;
    return m;
}

/* Duplicates comm. MPI_Comm_dup would wait without end for a process that does not call it. */
static bool duplicate(mpi_transport *m, MPI_Comm comm, double seconds)
{
    int done = 0, code = MPI_Comm_idup(comm, &m->comm, &m->duplicated);
    const double since = clock_now();
    while (code == MPI_SUCCESS &&
           (code = MPI_Test(&m->duplicated, &done, MPI_STATUS_IGNORE)) == MPI_SUCCESS && !done) {
        const double waited = clock_now() - since;
        if (waited >= seconds) return fails(m, -1, "another rank did not answer within %g seconds", seconds);
        rest(waited);
    }
    return code == MPI_SUCCESS || fails_by_mpi(m, -1, code);
}

/* Finds the processes on this machine. */
static bool find_near(mpi_transport *m)
{
    MPI_Comm near;
    int code = MPI_Comm_split_type(m->comm, MPI_COMM_TYPE_SHARED, m->rank, MPI_INFO_NULL, &near);
    if (code != MPI_SUCCESS) return fails_by_mpi(m, -1, code);
    MPI_Comm_size(near, &m->near_ranks);
    MPI_Comm_rank(near, &m->near_rank);
    MPI_Comm_free(&near);
    return true;
}

static bool connect_ranks(mpi_transport *m, MPI_Comm comm, double seconds)
{
    if (!duplicate(m, comm, seconds)) return false;
    MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(m->comm, &m->rank);
    return find_near(m);
}

static duet_status refuse(duet_transport_error *error, duet_status s, const char *why)
{
    *error = (duet_transport_error){ .rank = -1 };
    snprintf(error->text, sizeof error->text, "%s", why);
    return s;
}

/* Why comm cannot be used, or NULL. */
static const char *unsuitable(MPI_Comm comm)
{
    int inter = 0;
    if (comm == MPI_COMM_NULL) return "comm is MPI_COMM_NULL";
    MPI_Comm_test_inter(comm, &inter);
    return inter ? "comm is an intercommunicator" : NULL;
}

duet_status duet_mpi_transport(MPI_Comm comm, int piece_bytes, double seconds, duet_transport *t,
                               duet_transport_error *error)
{
    const char *why = unusable();
    if (!why) why = unsuitable(comm);
    if (why) return refuse(error, DUET_BAD_ARGUMENT, why);
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    mpi_transport *m = allocate(ranks, piece_bytes);
    if (!m) return refuse(error, DUET_NO_MEMORY, "no memory for a group of MPI processes");
    const handlers h = turn_off_handlers();
    const bool ok = connect_ranks(m, comm, seconds);
    turn_on_handlers(h);
    if (!ok) {
        *error = m->error;
        abandon(m);
        return DUET_RANK_FAILED;
    }
    *t = (duet_transport){
        .size = sizeof *t,
        .name = "MPI",
        .ranks = ranks,
        .rank = m->rank,
        .near_ranks = m->near_ranks,
        .near_rank = m->near_rank,
        .context = m,
        .exchange = mpi_exchange,
        .close = mpi_close,
    };
    return DUET_OK;
}
