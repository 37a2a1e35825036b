/* runtime/checkpoint/checkpoint.h -- the whole state of a run in one safetensors file.
 *
 * Tensors have the state's names and lie in ONNX's order, so a program compiled for another budget
 * reads them too. Files appear complete or not at all, and contain a checksum. */
#ifndef LS_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define LS_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "runtime/base/file.h"
#include "runtime/data/alphabet.h"
#include "runtime/engine/program_memory.h"
#include "runtime/privacy/ledger_text.h"
#include "runtime/checkpoint/run_habits.h"

enum { LS_SHUFFLED_BY = 2 };

/* The position of a run, and the settings of its data. 64-bit fields only, up to the alphabet: the
 * checksum covers its bytes. */
typedef struct LsPlace {
    int64_t update;             /* updates done */
    int64_t cursor;             /* batches taken from the data, over all epochs; in private
                                 * training: updates */
    int64_t epoch;              /* whole epochs done */
    int64_t samples;            /* of the training data */
    uint64_t seed;
    int64_t drop_last;          /* 0 or 1 */
    int64_t shuffle;            /* 0: file order; 1: by `seed`; LS_SHUFFLED_BY + N: by the seed N */
    LsAlphabet alphabet;        /* of the text; the checksum covers it only if it is not empty */
    LsPrivacyLedger ledger;     /* of private updates; likewise, and with it `seeded` */
    int64_t seeded;             /* 0 or 1: private updates were made with --noise-seed */
    int64_t keeps_frozen;       /* 0 or 1: checkpoints also have the weights that are not trained
                                 * (--save-frozen); a load leaves it alone */
    char *facts;                /* of the training data (runtime/data/data_facts.h), on the heap;
                                 * NULL. The checksum covers it if it is there */
    char precision[8];          /* of the program that wrote the checkpoint that was loaded; "": not
                                 * known */
    LsHabits habits;            /* the checksum covers its text, if that is not empty */
} LsPlace;

/* "f32", "f64", "bf16", "f16": in which the program computes. */
const char *ls_checkpoint_precision(const LsProgram *p);

/* Weights that are not trained are those of the program: a checkpoint has their checksum, unless
 * at->keeps_frozen. */
bool ls_checkpoint_save(const LsMemory *m, const LsPlace *at, const char *path, LsError *e);
/* On an unusable file leaves state and place unchanged, with LS_EXIT_DATA and the reason. Allocates
 * what ls_place_free frees. */
bool ls_checkpoint_load(const LsMemory *m, LsPlace *at, const char *path, LsError *e);

/* The same in memory. bytes: of the checkpoint; room 0: they are only counted. f->path: what errors
 * call it. */
bool ls_checkpoint_save_to(const LsMemory *m, const LsPlace *at, void *to, size_t room,
                           int64_t *bytes, LsError *e);
/* look: at the place alone, once all of the checkpoint is found usable; the state stays. */
bool ls_checkpoint_look(const LsMemory *m, LsPlace *at, const LsFile *f, LsError *e);
bool ls_checkpoint_load_from(const LsMemory *m, LsPlace *at, const LsFile *f, LsError *e);
/* Frees the ledger of private updates, and the facts. */
void ls_place_free(LsPlace *at);

#endif
