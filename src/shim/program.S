/* SPDX-License-Identifier: Apache-2.0 */
/* The shims as bytes of the program; SHIM_AMD64 and SHIM_ARM64 are the paths of the built files. One that was not built is
 * empty. */
    .section .rodata, "a"
    .global shim_amd64, shim_amd64_end, shim_arm64, shim_arm64_end
    .balign 16
shim_amd64:
#ifdef SHIM_AMD64
    .incbin SHIM_AMD64
#endif
shim_amd64_end:
    .byte 0
    .balign 16
shim_arm64:
#ifdef SHIM_ARM64
    .incbin SHIM_ARM64
#endif
shim_arm64_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
