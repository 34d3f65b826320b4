/* json.h - a JSON document as it is written. Without a path nothing is written, and all goes well. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json {
    FILE *out;
    const char *path;
    int depth;
    bool more; /* something stands before the next member */
} json;

/* Opens a document and its object, with what the times were taken on: processor, card, versions, commit, date. */
bool json_open(json *j, const char *path);
bool json_close(json *j); /* false: it could not be written */

/* key: of a member of an object; NULL for one of an array. bracket: '{' or '['. */
void json_begin(json *j, const char *key, char bracket);
void json_end(json *j, char bracket);
void json_text(json *j, const char *key, const char *value);
void json_integer(json *j, const char *key, int64_t value);
void json_number(json *j, const char *key, double value); /* JSON has no NaN and no infinity: null */
void json_truth(json *j, const char *key, bool value);
#endif
