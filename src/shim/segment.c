/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/segment.h"

#include <string.h>

/* Passes over one or more characters of the set; NULL if there is none, or no `end` follows. */
static const char *part(const char *at, const char *set, char end) {
    const size_t n = strspn(at, set);

    return n && at[n] == end ? at + n + 1 : NULL;
}

bool segment_is_name(const char *name) {
    const char *at = name;

    if (strlen(name) > SEGMENT_NAME_MAX)
        return false;
    at = part(at, "0123456789", '-');
    at = at ? part(at, "0123456789abcdef", '-') : NULL;
    at = at ? part(at, "0123456789", '.') : NULL;
    return at && !strcmp(at, &MYELIN_SPOOL_SUFFIX[1]);
}

bool segment_begin(struct segment *segment, const struct myelin_spool_header *header,
                   uint64_t file_size) {
    unsigned char fixed[MYELIN_SPOOL_FIXED];

    memcpy(fixed, header, sizeof fixed);
    memset(fixed + offsetof(struct myelin_spool_header, checksum), 0, sizeof header->checksum);
    if (header->magic != MYELIN_SPOOL_MAGIC || header->version != MYELIN_SPOOL_VERSION ||
        header->header_size != MYELIN_SPOOL_HEADER || header->size < MYELIN_SPOOL_HEADER ||
        header->size > MYELIN_SPOOL_SIZE_MAX || header->size % 8 || header->size != file_size ||
        header->checksum != myelin_spool_checksum(0, fixed, sizeof fixed))
        return false;
    *segment = (struct segment){ .size = header->size,
                                 .nonce = header->nonce,
                                 .good = MYELIN_SPOOL_HEADER,
                                 .at = MYELIN_SPOOL_HEADER };
    return true;
}

static enum segment_end stop(struct segment *segment, enum segment_end end) {
    segment->at = segment->good;
    segment->is_within = false;
    return end;
}

/* Takes the word in front of a record. */
static enum segment_end enter(struct segment *segment, uint64_t word) {
    const uint32_t head = (uint32_t)(word >> 32);

    if (word == 0)
        return stop(segment, SEGMENT_END);
    segment->left = head & MYELIN_SPOOL_LENGTH_MAX;
    if (myelin_spool_room(segment->left) > segment->size - segment->good)
        return stop(segment, SEGMENT_BAD);
    segment->word = word;
    segment->hash = myelin_spool_mix(segment->nonce, segment->good << 32 | head);
    segment->is_within = true;
    return SEGMENT_MORE;
}

/* Takes eight bytes of a payload, of which the last may have fewer. */
static void take(struct segment *segment, const unsigned char *bytes) {
    const size_t n = segment->left < 8 ? segment->left : 8;
    uint64_t word = 0;

    memcpy(&word, bytes, n);
    segment->hash = myelin_spool_mix(segment->hash, word);
    segment->left -= (uint32_t)n;
}

enum segment_end segment_walk(struct segment *segment, const void *bytes, size_t n) {
    const unsigned char *next = bytes;

    for (; n >= 8 && segment->at < segment->size; next += 8, n -= 8) {
        if (!segment->is_within) {
            uint64_t word;
            enum segment_end end;

            memcpy(&word, next, sizeof word);
            end = enter(segment, word);
            if (end != SEGMENT_MORE)
                return end;
        } else {
            take(segment, next);
        }
        segment->at += 8;
        if (segment->left > 0)
            continue;
        if ((uint32_t)segment->hash != (uint32_t)segment->word)
            return stop(segment, SEGMENT_BAD);
        segment->good = segment->at;
        segment->is_within = false;
    }
    return segment->at >= segment->size ? stop(segment, SEGMENT_END) : SEGMENT_MORE;
}
