// OpSDot of four signed bytes in each: glslang's own functions for it came later than Debian 12's.
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int four_products(uint a, uint b, spirv_literal int packed_format);
