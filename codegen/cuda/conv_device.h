/* codegen/cuda/conv_device.h -- devices as cuDNN describes them, so that plans can be made for a
 * device that this machine lacks. Figures are NVIDIA's published ones, or, for an attribute that is
 * not published, the driver's for that architecture. */
#ifndef LS_CODEGEN_CONV_DEVICE_H
#define LS_CODEGEN_CONV_DEVICE_H

typedef struct LsConvDevice { const char *name, *json; } LsConvDevice;

extern const LsConvDevice ls_conv_devices[];    /* by the names of machines; name NULL at the end */

#endif
