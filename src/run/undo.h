/* undo.h - saves the elements of destinations, so that several statements can be undone if a later
 * one fails. */
#ifndef UNDO_H
#define UNDO_H

#include "plan.h"

/* Empty if all members are 0. */
typedef struct undo_log {
    struct saved *last; /* the latest entry */
    int unsaved;
    const duet_matrix *lost[STATEMENTS]; /* so many: destinations that are lost if a device fails */
} undo_log;

/* Call one of these before a statement writes m.
 * undo_save: saves the elements of m. device: the device that will write m. The copy is on that
 * device; if there is no memory, or if other devices have the elements, it is on the host.
 * Errors: NO_MEMORY, DEVICE_ERROR, UNSUPPORTED
 * undo_lose: only a device error can stop the later statements (plan_is_ready). Then m is lost. */
duet_status undo_save(undo_log *u, const duet_matrix *m, int device);
void undo_lose(undo_log *u, const duet_matrix *m);

/* A statement found no memory: moves copies from GPUs to the host. Returns whether that freed
 * memory. Keeps the error. */
bool undo_move_to_host(undo_log *u);

/* A statement failed with status s: restores all saved elements, the latest first, and empties the
 * log. Returns s, or DEVICE_ERROR if elements are lost. The error text stays, the status of the thread
 * is the returned one. */
duet_status undo_all(undo_log *u, duet_status s);

/* Empties the log. */
void undo_forget(undo_log *u);

#endif
