/* json.h - writes a JSON document member by member. If the path is NULL, all functions succeed and
 * write nothing. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json {
    FILE *out;
    const char *path;
    int depth;
    bool more; /* a comma is needed before the next member */
} json;

/* Opens a document and writes its first members: processor, GPU, versions, commit, date. */
bool json_open(json *j, const char *path);
bool json_close(json *j); /* returns false if writing failed */

/* key: the name of a member of an object; NULL for an element of an array. bracket: '{' or '['. */
void json_begin(json *j, const char *key, char bracket);
void json_end(json *j, char bracket);
void json_text(json *j, const char *key, const char *value);
void json_integer(json *j, const char *key, int64_t value);
void json_number(json *j, const char *key, double value); /* NaN and infinity are written as null */
void json_truth(json *j, const char *key, bool value);
#endif
