/* runtime/watch/image_grid.h -- --image-grid: inputs, with the outputs of the evaluation form below
 * them. */
#ifndef LS_RUNTIME_WATCH_IMAGE_GRID_H
#define LS_RUNTIME_WATCH_IMAGE_GRID_H

#include "runtime/engine/engine.h"

/* One column for each of the first five samples of the data. Rows: the first image input, then
 * every watched value ("code/..." first, then "out/..."): an image, or a vector as a square. For an
 * autoencoder, narrow outputs come first; if there are none, nor "code/", its narrowest result is
 * shown. PNG, or PPM by the file name. */
bool ls_grid_write(LsEngine *g, LsLoader *l, const LsDataset *data, const char *path, LsError *e);

#endif
