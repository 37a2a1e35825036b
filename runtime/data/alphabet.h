/* runtime/data/alphabet.h -- the characters (bytes) of a text. A character's number is its rank
 * among the sorted characters, so the set defines the numbers. It is stored with the weights
 * trained on it: in checkpoints, and in the exported ONNX file, as metadata. */
#ifndef LS_RUNTIME_DATA_ALPHABET_H
#define LS_RUNTIME_DATA_ALPHABET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LS_ALPHABET_TEXT = 1024 };       /* bytes; the text form of 256 characters fits */

typedef struct LsAlphabet { uint64_t has[4]; } LsAlphabet;      /* one bit per character; all 0: no
                                                                 * text */

static inline bool ls_alphabet_has(const LsAlphabet *a, int c)
{
    return a->has[c / 64] >> c % 64 & 1;
}
static inline void ls_alphabet_add(LsAlphabet *a, int c)
{
    a->has[c / 64] |= (uint64_t)1 << c % 64;
}
int ls_alphabet_count(const LsAlphabet *a);
bool ls_alphabet_same(const LsAlphabet *a, const LsAlphabet *b);
/* The bytes in the order of their numbers, "10,32,97"; returns text. */
char *ls_alphabet_text(const LsAlphabet *a, char text[LS_ALPHABET_TEXT]);
/* Parses that text. False: not an alphabet. */
bool ls_alphabet_parse(LsAlphabet *a, const char *text, size_t n);

/* Reads the alphabet from the metadata of an ONNX file; empty if there is none. */
void ls_alphabet_of_onnx(LsAlphabet *a, const unsigned char *onnx, size_t n);
/* Encodes the alphabet as metadata to append to an ONNX file; returns its bytes. */
size_t ls_alphabet_metadata(const LsAlphabet *a, unsigned char to[LS_ALPHABET_TEXT + 64]);

#endif
