#!/bin/sh
# Prints assembly that embeds SPIR-V files, and shader_table of engine/vulkan/shaders.h: name, begin and end of each.
echo '.section .rodata'
for file in "$@"; do
    printf '.balign 4\n%s_begin:\n.incbin "%s"\n%s_end:\n' "shader_$(basename "$file" .spv)" "$file" \
        "shader_$(basename "$file" .spv)"
done
for file in "$@"; do
    name=$(basename "$file" .spv)
    printf 'name_%s: .asciz "%s"\n' "$name" "$name"
done
printf '%s\n' '.section .data.rel.ro, "aw"' '.balign 8' '.global shader_table' 'shader_table:'
for file in "$@"; do
    name=$(basename "$file" .spv)
    printf '.quad name_%s, shader_%s_begin, shader_%s_end\n' "$name" "$name" "$name"
done
printf '%s\n' '.quad 0, 0, 0' '.section .note.GNU-stack,"",%progbits'
