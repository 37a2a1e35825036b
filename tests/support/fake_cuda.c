/* tests/support/fake_cuda.c -- the part of libcuda.so.1 that lowerset uses to find devices, with
 * one imaginary device, for tests of behaviour with a device. */
#include <stddef.h>
#include <string.h>

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *n);
int cuDeviceGetName(char *to, int size, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);

enum { COMPUTE_MAJOR = 75 };            /* CUdevice_attribute */

int cuInit(unsigned flags) { return flags != 0; }

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

int cuDeviceGetCount(int *n)
{
    *n = 1;
    return 0;
}

int cuDeviceGetName(char *to, int size, int device)
{
    static const char name[] = "fake";
    memcpy(to, name, (size_t)size < sizeof name ? (size_t)size : sizeof name);
    return device != 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == COMPUTE_MAJOR ? 9 : 0;
    return device != 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)1 << 36;
    return device != 0;
}
