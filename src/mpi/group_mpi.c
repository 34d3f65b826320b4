/* group_mpi.c - makes a group of MPI processes. */
#include "mpi_transport.h"
#include <duet/mpi.h>

enum { SECONDS = 60 };

duet_group *duet_group_mpi(MPI_Comm comm, duet_place place)
{
    duet_transport t;
    duet_transport_error error;
    const duet_status s = duet_mpi_transport(comm, MPI_TRANSPORT_PIECE, SECONDS, &t, &error);
    if (s != DUET_OK) {
        duet_fail(s, error.text);
        return NULL;
    }
    duet_group *g = duet_group_connect(&t, place);
    if (!g) t.close(t.context, true); /* another process may still be in duet_group_connect */
    return g;
}
