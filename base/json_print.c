/* base/json_print.c -- see the header. */
#include "base/json_print.h"

#include <math.h>
#include <stdlib.h>

void ls_json_print(FILE *to, cJSON *root)
{
    char *text = cJSON_Print(root);
    if (text != NULL)
        fprintf(to, "%s\n", text);
    free(text);
    cJSON_Delete(root);
}

const char *ls_json_line(LsArena *arena, cJSON *root)
{
    char *text = cJSON_PrintUnformatted(root);
    const char *line = ls_arena_strdup(arena, text != NULL ? text : "null");
    free(text);
    cJSON_Delete(root);
    return line;
}

void ls_json_add_exact(cJSON *object, const char *name, double v)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", v);
    cJSON_AddRawToObject(object, name, isfinite(v) ? text : "null");
}
