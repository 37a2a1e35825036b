/* models/zoo_image.h -- the input of an image network. */
#ifndef LS_MODELS_ZOO_IMAGE_H
#define LS_MODELS_ZOO_IMAGE_H

#include "models/build.h"
#include "models/model_request.h"

/* The graph input "x" of an image network: N x channels x size x size. */
LsTensor ls_zoo_image(LsBuild *b, const LsModelRequest *r);

#endif
