/* mpi_transport.h - sends the messages of a group with MPI. */
#ifndef MPI_TRANSPORT_H
#define MPI_TRANSPORT_H

#include <duet/transport.h>
#include <mpi.h>

enum { MPI_TRANSPORT_PIECE = 1 << 18 };

/* Makes a transport of the processes of comm. All of them call it.
 *     piece_bytes   the largest number of bytes in one message of MPI; the same in all processes
 *     seconds       how long to wait for the other processes
 *
 * MPI accesses only buffers of the transport, never those of the caller. After a failure, some requests have
 * not finished, and MPI may use their buffers at any later time, for example in MPI_Finalize. MPI cannot
 * cancel all of them: not a send, and not a receive whose message has begun to arrive. So the transport
 * neither frees nor reuses these requests and buffers.
 *
 * exchange fails if no piece arrives for `seconds`. After a failure, further calls fail at once, with the
 * same text.
 * Errors    BAD_ARGUMENT, NO_MEMORY or RANK_FAILED; *t is unchanged, and *error says why */
duet_status duet_mpi_transport(MPI_Comm comm, int piece_bytes, double seconds, duet_transport *t,
                               duet_transport_error *error);

#endif
