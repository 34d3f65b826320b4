/* transport.h - the interface to code that sends the messages of a group, such as libduet-mpi or your own.
 * Programs use duet_group_mpi or duet_group_local instead. */
#ifndef DUET_TRANSPORT_H
#define DUET_TRANSPORT_H

#include <duet/duet.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that one rank sends to another, or receives from it. peer: the other rank. */
typedef struct duet_message {
    int peer;
    void *data;
    size_t bytes;
} duet_message;

/* How a transport describes a failure. rank: the rank that does not answer, or -1 if unknown. */
typedef struct duet_transport_error {
    int rank;
    char text[240];
} duet_transport_error;

/* Sends messages between processes, each of which is one rank.
 *     size            sizeof(duet_transport)
 *     name            such as "MPI", for duet_group_info
 *     ranks, rank     the number of ranks, and that of this process
 *     near_ranks      the number of ranks on this machine
 *     near_rank       the number of this process among those on this machine, from 0
 *     context         passed to the functions
 *     exchange        sends and receives all messages. It returns when all of them have arrived and all
 *                     buffers can be used again. Two ranks name the messages between them in the same order
 *                     and with the same sizes. Do not send messages of 0 bytes. Wait at most `seconds` for
 *                     other ranks. Only one thread calls it at a time. If it fails, it returns false and
 *                     describes the failure in *error
 *     close           ends the transport. failed: an exchange has failed; then close must not wait for other
 *                     ranks. May be NULL
 * Owner     Duet copies the structure. name and context must be valid until close has returned */
typedef struct duet_transport {
    size_t size;
    const char *name;
    int ranks, rank, near_ranks, near_rank;
    void *context;
    bool (*exchange)(void *context, const duet_message *send, int sends, const duet_message *receive,
                     int receives, double seconds, duet_transport_error *error);
    void (*close)(void *context, bool failed);
} duet_transport;

/* Makes a group of the processes that a transport connects. Every process calls it, with the same place:
 *     DUET_GPU    each process uses one GPU of its machine, that with the number near_rank
 *     DUET_CPU    no process uses a GPU
 *     DUET_AUTO   GPUs if every process has one of its own, the CPU if no machine has any
 * Owner     the caller, until duet_group_free, which also closes the transport
 * Errors    NULL, and the transport is not closed: BAD_ARGUMENT: t or place is invalid. NO_DEVICE: there are
 *           too few GPUs, as the text says, or NCCL is missing. RANK_FAILED: another rank failed, or does not
 *           answer. DEVICE_ERROR, NO_MEMORY */
DUET_API DUET_MUST duet_group *duet_group_connect(const duet_transport *t, duet_place place);

/* Sets the text that duet_error returns in this thread, and returns s. For code that makes a transport. */
DUET_API duet_status duet_fail(duet_status s, const char *text);

#ifdef __cplusplus
}
#endif
#endif
