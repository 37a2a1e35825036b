/* base/json_print.h -- values of cJSON as text. What is printed line by line for people has
 * base/json_text.h. */
#ifndef LS_BASE_JSON_PRINT_H
#define LS_BASE_JSON_PRINT_H

#include "base/arena.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* Prints the value and a newline; deletes it. */
void ls_json_print(FILE *to, cJSON *root);

/* The value in one line, in the arena, to be part of another one; deletes it. "null": no memory. */
const char *ls_json_line(LsArena *arena, cJSON *root);

/* Adds a number with all its digits: cJSON's own may lack the last bit. null: it is not finite. */
void ls_json_add_exact(cJSON *object, const char *name, double v);

#endif
