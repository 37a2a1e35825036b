/* compiler/packed/dynamic_codes.h -- the signed dynamic map of 8 bits, of bitsandbytes: what codes
 * of scales stand for. */
#ifndef LS_COMPILER_PACKED_DYNAMIC_CODES_H
#define LS_COMPILER_PACKED_DYNAMIC_CODES_H

#include <stdint.h>

/* The map, ascending. */
void ls_dynamic_map(float map[256]);
/* The code of the nearest value. */
uint8_t ls_dynamic_code(const float map[256], float x);

#endif
