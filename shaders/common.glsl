// What all shaders share. Buffers are reached by their device addresses, which come as push constants.
#ifndef COMMON_GLSL
#define COMMON_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_control_flow_attributes : require

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Ints { int v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Uints { uint v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Vectors { vec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer WritableVectors { vec4 v[]; };

// A row of the batch; as struct row_info in engine/vulkan/vulkan.h.
struct RowInfo {
    int position, first_page; // of the page list
    float query_scale;
};
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer RowInfos { RowInfo v[]; };

// Entry i of a list of row numbers, or where there is none, i. The address is that of some list in any case: drivers
// may read it (Mesa 26's lavapipe does).
uint listed(uint has_list, Ints list, uint i) { return has_list != 0 ? uint(list.v[i]) : i; }

// Rows [first, end) of the batch in the order of their experts, those of one expert: a tile is the first of them. Where
// there are none, it is not needed.
struct Tile {
    uint expert, first, end;
};
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Tiles { Tile v[]; };

#endif
