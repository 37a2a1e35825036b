/* runtime/data/picture_read.h -- reads windows of pictures, and of maps of labels that belong to
 * them. */
#ifndef LS_RUNTIME_DATA_PICTURE_READ_H
#define LS_RUNTIME_DATA_PICTURE_READ_H

#include "runtime/data/dataset.h"
#include "runtime/data/picture_draw.h"

/* The sizes of an input that has pictures: reals, with samples, channels, rows and columns. False:
 * it has none. */
bool ls_picture_size(const LsDataset *d, uint32_t input, LsPictureSize *s);
/* Likewise of what belongs to them, element by element: the last two axes are the pictures' rows
 * and columns. */
bool ls_map_size(const LsDataset *d, uint32_t input, LsPictureSize *s);
/* The first input that has pictures; ninput: none has. */
uint32_t ls_first_picture(const LsDataset *d);

/* Columns or rows from x on, `n` of them, are those of the picture from `from` on; step -1: down
 * from there; 0: there is no picture. */
typedef struct LsPiece {
    int64_t x, n, from;
    int step;
} LsPiece;
enum { LS_PIECES = 8 };
/* The next piece behind `x`, along the columns of a window, or its rows. Returns false behind the
 * last one. */
bool ls_window_piece(const LsWindow *w, const LsPictureSize *s, bool rows, int64_t x, LsPiece *p);

/* Reads a window of a sample, to the sample's place `to` in a batch. Resized windows take the
 * nearest element. Labels of a target of probabilities become these. Beyond a picture that is not
 * mirrored there are zeros of the data, or labels that are ignored. */
bool ls_window_read(const LsDataset *d, uint32_t input, int64_t sample, const LsWindow *w, void *to,
                    LsError *e);
#endif
