/* runtime/cuda/cublaslt_choice.h -- the cache of algorithms chosen for products.
 *
 * One file per library version and device: a line per product, "KEY<tab>8 hexadecimal words<tab>
 * tuned|asked". A cached choice is only a proposal: the library checks it again. The file is
 * optional, so errors in reading or writing it are ignored. */
#ifndef LS_CUBLASLT_CHOICE_H
#define LS_CUBLASLT_CHOICE_H

#include <cublasLt.h>
#include <stdbool.h>

enum { LS_CHOICE_KEY = 240 };

typedef struct LsChoice {
    char key[LS_CHOICE_KEY];
    cublasLtMatmulAlgo_t algo;
    bool tuned;                 /* by timing; else the choice of the library's heuristics */
} LsChoice;

typedef struct LsChoices {
    char path[4096];            /* "": no file */
    LsChoice *row; int nrow, cap;
    bool changed;
} LsChoices;

/* folder: NULL for none. library: "libcublasLt.so.13 13.1.0". */
void ls_choices_open(LsChoices *c, const char *folder, const char *library, const char *device);
const LsChoice *ls_choices_find(const LsChoices *c, const char *key);   /* NULL: not cached */
/* Adds a choice; replaces the choice with the same key, if any. */
void ls_choices_put(LsChoices *c, const LsChoice *choice);
/* Writes the file if anything changed. */
void ls_choices_close(LsChoices *c);

#endif
