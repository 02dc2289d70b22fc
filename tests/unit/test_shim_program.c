/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <string.h>

#include "shim/program.h"

enum { SIZE_MAX_BYTES = 128 << 10 }; /* docs/shim.md */

static const Elf64_Ehdr *header_of(const struct shim_program *program, Elf64_Ehdr *header) {
    assert_true(program->size > sizeof *header);
    memcpy(header, program->bytes, sizeof *header);
    return header;
}

/* A shim runs in any image, so it asks for no loader and no library. */
static void check_program(const char *architecture, uint16_t machine) {
    const struct shim_program *program = shim_program_for(architecture);
    const Elf64_Ehdr *header;
    Elf64_Ehdr copy;
    Elf64_Phdr part;

    if (!program)
        skip(); /* this build has none: tools/musl-arm64 has not been at work */
    assert_string_equal(program->architecture, architecture);
    assert_true(program->size <= SIZE_MAX_BYTES);
    header = header_of(program, &copy);
    assert_memory_equal(header->e_ident, ELFMAG, SELFMAG);
    assert_int_equal(header->e_machine, machine);
    assert_int_equal(header->e_type, ET_EXEC);
    for (size_t i = 0; i < header->e_phnum; i++) {
        memcpy(&part, program->bytes + header->e_phoff + i * sizeof part, sizeof part);
        assert_int_not_equal(part.p_type, PT_INTERP);
        assert_int_not_equal(part.p_type, PT_DYNAMIC);
    }
}

static void the_shim_of_amd64_is_a_small_static_program_of_that_processor(void **state) {
    (void)state;
    assert_non_null(shim_program_for("amd64"));
    check_program("amd64", EM_X86_64);
}

static void the_shim_of_arm64_is_a_small_static_program_of_that_processor(void **state) {
    (void)state;
    check_program("arm64", EM_AARCH64);
}

static void a_processor_without_a_shim_has_none(void **state) {
    (void)state;
    assert_null(shim_program_for("s390x"));
    assert_null(shim_program_for(""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shim_of_amd64_is_a_small_static_program_of_that_processor),
        cmocka_unit_test(the_shim_of_arm64_is_a_small_static_program_of_that_processor),
        cmocka_unit_test(a_processor_without_a_shim_has_none),
    };

    return cmocka_run_group_tests_name("shim_program", tests, NULL, NULL);
}
