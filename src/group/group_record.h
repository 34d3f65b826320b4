/* group_record.h - statements of a group in a recording: each rank records its own statements. */
#ifndef GROUP_RECORD_H
#define GROUP_RECORD_H

#include "ranks.h"
#include "record.h"

typedef struct group_call group_call;

/* Sets *call to the call of this thread's recording to which a statement of g is added; NULL: the thread does
 * not record. Errors: NO_MEMORY */
duet_status group_call_of(duet_group *g, group_call **call);

/* In the thread of a rank: statements between these two are recorded. call may be NULL. */
duet_status group_call_resume(group_call *call, int index);
void group_call_pause(group_call *call, int index);

/* Sets the recording of this thread, and returns the previous one. */
duet_recording *recording_of_thread(duet_recording *r);

/* The statement uses m: a replay checks that m has not been freed, and copies its elements to the parts if
 * the host has them. */
duet_status group_call_uses(group_call *call, const duet_matrix *m);

/* The call frees m when it is freed. */
duet_status group_call_keeps(group_call *call, duet_matrix *m);

#endif
