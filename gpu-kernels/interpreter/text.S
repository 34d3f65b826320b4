/* text.S - a file as constant data: from NAME(text) to NAME(end). */
#define PASTE(a, b) a##_##b
#define JOIN(a, b)  PASTE(a, b)
#define START JOIN(NAME, text)
#define END   JOIN(NAME, end)
    .section .rodata
    .globl START
    .hidden START
START:
    .incbin TEXT
    .globl END
    .hidden END
END:
    .section .note.GNU-stack, "", %progbits
