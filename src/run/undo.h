/* undo.h - saves the elements of destinations, so that several statements can be undone if a later one
 * fails. */
#ifndef UNDO_H
#define UNDO_H

#include "plan.h"

typedef struct undo_log {
    struct saved *last; /* the latest entry */
} undo_log;

/* Saves the elements of m. device: the device that will write m. Everything that undo_all needs is allocated
 * here.
 * Errors: NO_MEMORY, DEVICE_ERROR, UNSUPPORTED */
duet_status undo_save(undo_log *u, const duet_matrix *m, int device);

/* Restores all saved elements, the latest first, and empties the log. s: why. Returns s, or DEVICE_ERROR if
 * the device fails meanwhile and elements are lost. Does not change the error text. */
duet_status undo_all(undo_log *u, duet_status s);

/* Empties the log. */
void undo_forget(undo_log *u);

#endif
