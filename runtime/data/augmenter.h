/* runtime/data/augmenter.h -- augments the samples of a program's batches. */
#ifndef LS_RUNTIME_DATA_AUGMENTER_H
#define LS_RUNTIME_DATA_AUGMENTER_H

#include "runtime/data/picture_resample.h"

typedef enum { LS_INPUT_AS_IS, LS_INPUT_PICTURE, LS_INPUT_MAP } LsInputKind;

typedef struct LsAugmenter {
    LsAugment how;
    uint64_t seed;
    const LsDataset *data;
    uint8_t *kind;      /* of each input: LsInputKind */
    LsPictureSize size; /* of all pictures */
    int64_t channels;   /* most of a picture */
    bool windows;       /* of streams of tokens begin elsewhere in every epoch */
    char *memory;       /* `rooms` times `room` bytes */
    int64_t room;
    int rooms;
} LsAugmenter;

/* how: NULL: nothing but windows may change. rooms: samples that are made at the same time. The
 * data must stay. An error is LS_EXIT_USAGE: the program or its data do not take it. */
bool ls_augmenter_open(LsAugmenter *a, const LsAugment *how, const LsDataset *d, uint64_t seed,
                       int rooms, LsError *e);
void ls_augmenter_close(LsAugmenter *a);
/* The target that says nothing of places, as far as can be known, and stays where pictures move;
 * NULL: none. */
const char *ls_augmenter_leaves(const LsAugmenter *a);

/* Reads a sample of an input to its place `to` in a batch. Threads may call it at the same time,
 * each with a room of its own, from 0. epoch: it decides, with the sample, what is drawn. */
bool ls_augmenter_read(const LsAugmenter *a, int room, uint32_t input, int64_t sample,
                       int64_t epoch, void *to, LsError *e);

#endif
