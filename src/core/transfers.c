/* transfers.c - reports or refuses copies between devices: DUET_TRANSFERS. */
#include "transfers.h"
#include "backend.h"
#include "shape.h"
#include "status.h"
#include "trace.h"

duet_status transfer_refused(const duet_matrix *m, int from, int to)
{
    char text[SHAPE_TEXT];
    shape_text(text, m->at.type, m->at.rank, m->at.size);
    if (thread_get()->transfers == DUET_TRANSFERS_FORBIDDEN)
        return fail(DUET_FORBIDDEN,
                    "%s would be copied from the %s to the %s (%zu bytes), which is forbidden here", text,
                    device_name(from), device_name(to), m->storage->bytes);
    trace_line("%s is copied from the %s to the %s (%zu bytes)", text, device_name(from), device_name(to),
               m->storage->bytes);
    return DUET_OK;
}
