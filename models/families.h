/* models/families.h -- each family's entry for the table in zoo.c. */
#ifndef LS_MODELS_FAMILIES_H
#define LS_MODELS_FAMILIES_H

#include "models/layers.h"
#include "models/model_request.h"
#include "models/zoo_image.h"

/* Each builds its network for the options of r: inputs, layers, outputs. */
void ls_zoo_autoencoder(LsBuild *b, const LsModelRequest *r);
void ls_zoo_cnn(LsBuild *b, const LsModelRequest *r);
void ls_zoo_digits(LsBuild *b, const LsModelRequest *r);
void ls_zoo_densenet(LsBuild *b, const LsModelRequest *r);
void ls_zoo_googlenet(LsBuild *b, const LsModelRequest *r);
void ls_zoo_gpt(LsBuild *b, const LsModelRequest *r);
void ls_zoo_mlp(LsBuild *b, const LsModelRequest *r);
void ls_zoo_pspnet(LsBuild *b, const LsModelRequest *r);
void ls_zoo_resnet(LsBuild *b, const LsModelRequest *r);
void ls_zoo_unet(LsBuild *b, const LsModelRequest *r);
void ls_zoo_vgg(LsBuild *b, const LsModelRequest *r);
void ls_zoo_vit(LsBuild *b, const LsModelRequest *r);

/* resnet.c: the layers before the pooling; `at` is "" or a prefix such as "backbone.". If
 * `dilated`, the last two stages use dilated kernels instead of strides (Yu & Koltun 2016). */
typedef struct LsResnetBody { int variant; int64_t width; int stem; bool dilated; } LsResnetBody;
LsTensor ls_zoo_resnet_body(LsBuild *b, const char *at, LsTensor x, LsResnetBody body);

#endif
