/* runtime/cuda/cublaslt_choice.h -- algorithms chosen for products, kept from run to run.
 *
 * One file per library version and device: a line per product, "KEY<tab>8 hexadecimal words<tab>
 * tuned|asked". A kept choice is only a proposal: the library checks it again. Without the file
 * everything works the same, so errors in reading or writing it are passed over. */
#ifndef LS_CUBLASLT_CHOICE_H
#define LS_CUBLASLT_CHOICE_H

#include <cublasLt.h>
#include <stdbool.h>

enum { LS_CHOICE_KEY = 240 };

typedef struct LsChoice {
    char key[LS_CHOICE_KEY];
    cublasLtMatmulAlgo_t algo;
    bool tuned;                 /* by the clock; else it is what the library's heuristics said */
} LsChoice;

typedef struct LsChoices {
    char path[4096];            /* "": not kept */
    LsChoice *row; int nrow, cap;
    bool changed;
} LsChoices;

/* folder: NULL for none. library: "libcublasLt.so.13 13.1.0". */
void ls_choices_open(LsChoices *c, const char *folder, const char *library, const char *device);
const LsChoice *ls_choices_find(const LsChoices *c, const char *key);   /* NULL: not there */
/* Puts a choice in the place of the one with its key, if any. */
void ls_choices_put(LsChoices *c, const LsChoice *choice);
/* Writes the file if anything changed. */
void ls_choices_close(LsChoices *c);

#endif
