/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler attributes, spelled once. Needs GNU C (gcc >= 10, clang >= 11). */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#define MUST_CHECK                        __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))

/* AUTO(buf) b = …;        releases b when the scope ends, on every path.
 * AUTO_PTR(plan) p = …;   frees p likewise; see DEFINE_AUTO_PTR. */
#define AUTO(S)     __attribute__((cleanup(S##_release))) struct S
#define AUTO_PTR(S) __attribute__((cleanup(S##_free_at))) struct S *
#define DEFINE_AUTO_PTR(S)                                                                         \
    static inline void S##_free_at(struct S **p) {                                                 \
        S##_free(*p);                                                                              \
    }

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
