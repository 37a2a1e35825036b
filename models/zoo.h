/* models/zoo.h -- the networks that can be generated, their options, and one call to write one. */
#ifndef LS_MODELS_ZOO_H
#define LS_MODELS_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/model_request.h"

typedef struct LsModelOption {
    const char *name, *help;    /* "size"; what it means */
    const char *choice;         /* "deconv|bilinear": the words of the enumeration, from 1; or
                                 * NULL */
    int64_t min, max;           /* of a number */
} LsModelOption;
extern const LsModelOption ls_model_options[LS_NOPTS];

typedef struct LsModelInfo { int64_t parameters; uint32_t nodes; } LsModelInfo;

const LsModel *ls_model_find(const char *name);     /* NULL: no such model */
const LsModel *ls_model_at(size_t i);               /* the i-th of the list; NULL past its end */
LsModelRequest ls_model_request(const LsModel *m);  /* with every option at its preset */

/* Sets one option from text ("64", "0.1", "bilinear"). False with a sentence in err if the model
 * does not take the option or the value. */
bool ls_model_set(LsModelRequest *r, const char *name, const char *value, char *err, size_t size);

/* Writes the network to `path`; info may be NULL. Returns 0, or with a sentence in err 1 (cannot be
 * written) or 2 (incompatible options). */
int ls_model_write(const LsModelRequest *r, const char *path, LsModelInfo *info,
                   char *err, size_t size);
/* The same without a file. */
int ls_model_count(const LsModelRequest *r, LsModelInfo *info, char *err, size_t size);

#endif
