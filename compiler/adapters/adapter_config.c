/* compiler/adapters/adapter_config.c -- adapter_config.json of peft, read and written. */
#include "compiler/adapters/adapter_spec.h"

#include "base/read_file.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JSON = 1 << 24 };   /* bytes */

typedef struct Config {
    LsCtx *cx;
    const char *path;
    const cJSON *json;
} Config;

static bool refuse(const Config *c, const char *key, const char *why)
{
    return ls_error(c->cx, LS_NOWHERE, LS_E_OPTION, NULL, "%s: \"%s\": %s", c->path, key, why);
}

/* The value; NULL: absent, null, false, or empty. */
static const cJSON *given(const Config *c, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(c->json, key);
    const bool empty = v == NULL || cJSON_IsNull(v) || cJSON_IsFalse(v)
                       || ((cJSON_IsArray(v) || cJSON_IsObject(v)) && v->child == NULL)
                       || (cJSON_IsString(v) && v->valuestring[0] == '\0');
    return empty ? NULL : v;
}

static bool read_number(const Config *c, const char *key, double least, double *to)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(c->json, key);
    if (v == NULL || cJSON_IsNull(v))
        return true;
    *to = v->valuedouble;
    return (cJSON_IsNumber(v) && *to >= least) || refuse(c, key, "not a number in its range");
}

static bool read_names(const Config *c, const char *key, const char ***to, uint32_t *n)
{
    const cJSON *v = given(c, key), *one;
    if (v == NULL)
        return true;
    if (!cJSON_IsArray(v))
        return refuse(c, key, "not a list of names");
    *to = ls_arena_alloc(c->cx->arena, (size_t)cJSON_GetArraySize(v), sizeof **to);
    cJSON_ArrayForEach(one, v) {
        if (!cJSON_IsString(one))
            return refuse(c, key, "not a list of names");
        (*to)[(*n)++] = ls_arena_strdup(c->cx->arena, one->valuestring);
    }
    return true;
}

static bool read_patterns(const Config *c, const char *key, LsAdapterPattern **to, uint32_t *n)
{
    const cJSON *v = given(c, key), *one;
    if (v == NULL)
        return true;
    if (!cJSON_IsObject(v))
        return refuse(c, key, "not an object of numbers by name");
    *to = ls_arena_alloc(c->cx->arena, (size_t)cJSON_GetArraySize(v), sizeof **to);
    cJSON_ArrayForEach(one, v) {
        if (!cJSON_IsNumber(one))
            return refuse(c, key, "not an object of numbers by name");
        (*to)[(*n)++] =
            (LsAdapterPattern){ls_arena_strdup(c->cx->arena, one->string), one->valuedouble};
    }
    return true;
}

static bool read_layers(const Config *c, LsAdapterSpec *s)
{
    const cJSON *v = given(c, "layers_to_transform"), *one;
    if (v == NULL)
        return true;
    s->layer = ls_arena_alloc(c->cx->arena, (size_t)cJSON_GetArraySize(v) + 1, sizeof *s->layer);
    if (cJSON_IsNumber(v))
        s->layer[s->nlayer++] = (int64_t)v->valuedouble;
    cJSON_ArrayForEach(one, v)
        s->layer[s->nlayer++] = (int64_t)one->valuedouble;
    return true;
}

static bool read_targets(const Config *c, LsAdapterSpec *s)
{
    const cJSON *v = given(c, "target_modules");
    if (v == NULL || !cJSON_IsString(v))
        return read_names(c, "target_modules", &s->target, &s->ntarget);
    if (strcmp(v->valuestring, "all-linear") != 0)
        s->pattern = ls_arena_strdup(c->cx->arena, v->valuestring);
    return true;
}

static bool read_bias(const Config *c, LsAdapterSpec *s)
{
    const cJSON *v = given(c, "bias");
    static const char *const word[] = {"none", "all", "lora_only"};
    for (int k = 0; v != NULL && cJSON_IsString(v) && k < 3; k++)
        if (strcmp(v->valuestring, word[k]) == 0) {
            s->bias = (LsAdapterBias)k;
            return true;
        }
    return v == NULL || refuse(c, "bias", "not none, all or lora_only");
}

/* Kinds of adapters that are others than these. */
static bool check_kind(const Config *c)
{
    static const char *const other[] = {"target_parameters",  "trainable_token_indices",
                                        "alora_invocation_tokens", "layer_replication",
                                        "use_qalora", "use_bdlora", "lora_bias",
                                        "exclude_modules"};
    const cJSON *type = given(c, "peft_type");
    if (type == NULL || !cJSON_IsString(type) || strcmp(type->valuestring, "LORA") != 0)
        return refuse(c, "peft_type", "only LORA is read");
    for (size_t k = 0; k < sizeof other / sizeof *other; k++)
        if (given(c, other[k]) != NULL)
            return refuse(c, other[k], "not read: it changes what an adapter computes");
    return true;
}

static bool read_config(const Config *c, LsAdapterSpec *s)
{
    double rank = 8;
    s->rslora = given(c, "use_rslora") != NULL;
    s->dora = given(c, "use_dora") != NULL;
    s->alpha = 8;
    if (!check_kind(c) || !read_number(c, "r", 1, &rank)
        || !read_number(c, "lora_alpha", -1e9, &s->alpha)
        || !read_number(c, "lora_dropout", 0, &s->dropout) || !read_bias(c, s)
        || !read_targets(c, s) || !read_layers(c, s)
        || !read_patterns(c, "rank_pattern", &s->rank_of, &s->nrank_of)
        || !read_patterns(c, "alpha_pattern", &s->alpha_of, &s->nalpha_of)
        || !read_names(c, "modules_to_save", &s->save, &s->nsave))
        return false;
    s->rank = (int64_t)rank;
    return true;
}

LsAdapterSpec *ls_adapter_config(LsCtx *cx, const char *dir)
{
    LsAdapterSpec *s = ls_arena_alloc(cx->arena, 1, sizeof *s);
    const char *path = ls_arena_printf(cx->arena, "%s/adapter_config.json", dir);
    char *text = ls_read_file_into(cx->arena, path, MOST_JSON, NULL);
    if (text == NULL) {
        ls_error(cx, LS_NOWHERE, LS_E_IO, "--adapter takes a folder that peft's save_pretrained "
                 "wrote", "cannot read '%s'", path);
        return NULL;
    }
    cJSON *json = cJSON_Parse(text);
    const Config c = {cx, path, json};
    bool ok = cJSON_IsObject(json)
              || ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL, "%s: not a JSON object", path);
    ok = ok && read_config(&c, s);
    cJSON_Delete(json);
    s->dir = dir;
    return ok ? s : NULL;
}

/* ---- writing ---- */

static void add_names(cJSON *to, const char *key, const char *const *name, uint32_t n)
{
    cJSON *list = n > 0 ? cJSON_AddArrayToObject(to, key) : cJSON_AddNullToObject(to, key);
    for (uint32_t k = 0; k < n; k++)
        cJSON_AddItemToArray(list, cJSON_CreateString(name[k]));
}

static void add_patterns(cJSON *to, const char *key, const LsAdapterPattern *p, uint32_t n)
{
    cJSON *all = cJSON_AddObjectToObject(to, key);
    for (uint32_t k = 0; k < n; k++)
        cJSON_AddNumberToObject(all, p[k].name, p[k].value);
}

const char *ls_adapter_config_text(LsArena *a, const LsAdapterSpec *s)
{
    static const char *const bias[] = {"none", "all", "lora_only"};
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "peft_type", "LORA");
    cJSON_AddNullToObject(j, "task_type");
    cJSON_AddNullToObject(j, "base_model_name_or_path");
    cJSON_AddBoolToObject(j, "inference_mode", true);
    cJSON_AddNumberToObject(j, "r", (double)s->rank);
    cJSON_AddNumberToObject(j, "lora_alpha", s->alpha);
    cJSON_AddNumberToObject(j, "lora_dropout", s->dropout);
    cJSON_AddBoolToObject(j, "use_rslora", s->rslora);
    cJSON_AddBoolToObject(j, "use_dora", s->dora);
    cJSON_AddStringToObject(j, "bias", bias[s->bias]);
    cJSON_AddBoolToObject(j, "fan_in_fan_out", false);
    cJSON_AddBoolToObject(j, "init_lora_weights", true);
    add_patterns(j, "rank_pattern", s->rank_of, s->nrank_of);
    add_patterns(j, "alpha_pattern", s->alpha_of, s->nalpha_of);
    if (s->pattern != NULL)
        cJSON_AddStringToObject(j, "target_modules", s->pattern);
    else
        add_names(j, "target_modules", s->target, s->ntarget);
    add_names(j, "modules_to_save", s->save, s->nsave);
    char *text = cJSON_Print(j);
    const char *kept = ls_arena_strdup(a, text);
    cJSON_free(text);
    cJSON_Delete(j);
    return kept;
}
