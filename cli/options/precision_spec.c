/* cli/options/precision_spec.c -- see precision_spec.h. */
#include "cli/options/precision_spec.h"

#include <stdio.h>
#include <string.h>

enum { PARAMS, COMPUTE, OUTPUT, NPARTS };
typedef enum { F32, F64, TF32, BF16, F16, NNAMES } Name;

/* jmp's names stand for the same types. */
static const struct { const char *word; Name name; } word[] = {
    {"f32", F32},        {"f64", F64},   {"tf32", TF32}, {"bf16", BF16},         {"f16", F16},
    {"float32", F32},    {"full", F32},  {"float64", F64}, {"bfloat16", BF16},   {"float16", F16},
};

static bool find(const char *text, size_t n, Name *name)
{
    for (size_t k = 0; k < sizeof word / sizeof *word; k++)
        if (strlen(word[k].word) == n && strncmp(word[k].word, text, n) == 0) {
            *name = word[k].name;
            return true;
        }
    return false;
}

/* The part that "compute=..." names; *n: the bytes before the type. */
static int part_of(const char *text, size_t *n)
{
    static const char *const name[NPARTS][2] = {
        {"params=", "p="}, {"compute=", "c="}, {"output=", "o="}};
    for (int part = 0; part < NPARTS; part++)
        for (int k = 0; k < 2; k++)
            if (strncmp(text, name[part][k], strlen(name[part][k])) == 0) {
                *n = strlen(name[part][k]);
                return part;
            }
    return -1;
}

static bool parts(const char *text, Name of[NPARTS], char *why, size_t size)
{
    bool given[NPARTS] = {false};
    for (const char *at = text, *end; ; at = end + 1) {
        size_t skip = 0;
        int part = part_of(at, &skip);
        end = at + strcspn(at, ",");
        if (part < 0 || given[part] || !find(at + skip, (size_t)(end - at) - skip, &of[part])) {
            snprintf(why, size,
                     "'%.*s' is not one of params= compute= output=, each once, with a type (f32, "
                     "f64, bf16, "
                     "f16)",
                     (int)(end - at), at);
            return false;
        }
        given[part] = true;
        if (*end == '\0')
            break;
    }
    of[COMPUTE] = given[COMPUTE] ? of[COMPUTE] : of[PARAMS];
    of[OUTPUT] = given[OUTPUT] ? of[OUTPUT] : of[COMPUTE];
    return true;
}

/* Mixed types that have a meaning: parameters in f32, outputs in f32 or in the type that computes
 * them. */
static bool mixed(const Name of[NPARTS], LsPrecisionSpec *to, char *why, size_t size)
{
    bool narrow = of[COMPUTE] == BF16 || of[COMPUTE] == F16;
    if (of[PARAMS] != F32)
        snprintf(
            why, size,
            "parameters are kept in f32, as updates are smaller than steps of 16 bits: params=f32");
    else if (of[COMPUTE] != F32 && !narrow)
        snprintf(why, size, "with parameters in f32, compute is f32, bf16 or f16");
    else if (of[OUTPUT] != F32 && of[OUTPUT] != of[COMPUTE])
        snprintf(why, size, "output is f32, or the type of compute");
    else {
        to->compute = !narrow ? LS_REAL : of[COMPUTE] == BF16 ? LS_BF16 : LS_F16;
        return true;
    }
    return false;
}

bool ls_precision_parse(const char *text, LsPrecisionSpec *to, char *why, size_t size)
{
    Name of[NPARTS] = {F32, F32, F32}, all;
    *to = (LsPrecisionSpec){.real_bytes = 4, .compute = LS_REAL};
    if (text == NULL)
        return true;
    if (!find(text, strlen(text), &all)) {
        if (strchr(text, '=') == NULL) {
            snprintf(why, size,
                     "'%s' is not one of f32 f64 tf32 bf16 f16, nor params=T,compute=T,output=T",
                     text);
            return false;
        }
        if (!parts(text, of, why, size))
            return false;
        if (of[PARAMS] != F64 || of[COMPUTE] != F64 || of[OUTPUT] != F64)
            return mixed(of, to, why, size);
        all = F64;
    }
    to->real_bytes = all == F64 ? 8 : 4;
    to->tf32 = all == TF32;
    to->compute = all == BF16 ? LS_BF16 : all == F16 ? LS_F16 : LS_REAL;
    return true;
}
