/* SPDX-License-Identifier: Apache-2.0 */
/* The shims as bytes of the program; SHIM_AMD64 is the path of the built file. */
    .section .rodata, "a"
    .global shim_amd64, shim_amd64_end
    .balign 16
shim_amd64:
    .incbin SHIM_AMD64
shim_amd64_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
