/* status.c - sets the error text of a thread. */
#include "status.h"
#include "c_locale.h"
#include "thread.h"
#include <duet/transport.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

duet_status fail(duet_status s, const char *format, ...)
{
    thread *t = thread_get();
    char text[sizeof t->text]; /* a separate buffer: t->text may be an argument */
    va_list ap;
    va_start(ap, format);
    print_plainly(text, sizeof text, format, ap);
    va_end(ap);
    memcpy(t->text, text, sizeof text);
    t->status = s;
    return s;
}

/* The length of "file:line: " at the start of text, or 0. The name of the file has no blank. */
static size_t place_length(const char *text)
{
    for (size_t i = strcspn(text, ": "); text[i] == ':'; i += 1 + strcspn(text + i + 1, ": ")) {
        const size_t digits = strspn(text + i + 1, "0123456789");
        if (digits && !strncmp(text + i + 1 + digits, ": ", 2)) return i + 1 + digits + 2;
    }
    return 0;
}

static bool has_place(const char *text) { return place_length(text) != 0; }

duet_status fail_within(duet_status s, const char *format, ...)
{
    const char *text = thread_get()->text;
    const size_t place = place_length(text);
    char what[sizeof thread_get()->text];
    va_list ap;
    va_start(ap, format);
    print_plainly(what, sizeof what, format, ap);
    va_end(ap);
    return fail(s, "%.*s%s: %s", (int)place, text, what, text + place);
}

bool error_has_place(void) { return has_place(thread_get()->text); }

duet_status fail_at(duet_status s, const char *where)
{
    const char *text = thread_get()->text;
    if (s == DUET_OK || !where || has_place(text)) return s;
    size_t n = strlen(where);
    if (!strncmp(text, where, n) && text[n] == ':') return s;
    return fail(s, "%s: %s", where, text);
}

void error_keep(error_text *e)
{
    const thread *t = thread_get();
    memcpy(e->text, t->text, strlen(t->text) + 1); /* usually short or empty */
    e->status = t->status;
}

void error_put_back(const error_text *e)
{
    thread *t = thread_get();
    memcpy(t->text, e->text, strlen(e->text) + 1);
    t->status = e->status;
}

duet_status error_becomes(duet_status s)
{
    thread_get()->status = s;
    return s;
}

void duet_error_at(const char *site) { fail_at(thread_get()->status, site); }

duet_status duet_fail(duet_status s, const char *text) { return fail(s, "%s", text ? text : ""); }

const char *duet_error(void) { return thread_get()->text; }

duet_status duet_error_status(void) { return thread_get()->status; }

const char *duet_status_text(duet_status s)
{
    static const char *const texts[] = {
#define DUET_STATUS(name, text) text,
#include <duet/status.def>
    };
    return (unsigned)s < DUET_STATUS_COUNT ? texts[s] : "not a status";
}
