// Matrices that the threads of a subgroup hold together: those of GL_KHR_cooperative_matrix, or where glslc lacks it,
// of GL_NV_cooperative_matrix. -DCOOPERATIVE_KHR or -DCOOPERATIVE_NV chooses.
//
//   LEFT_MATRIX(m, k)    of halves
//   RIGHT_MATRIX(k, n)   of halves
//   SUM_MATRIX(m, n)     of floats
//   LOAD_ROWS, LOAD_COLUMNS   from an array, a row or a column after the other; STORE_COLUMNS
//   MULTIPLY_ADD         left × right + sum
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

#if defined(COOPERATIVE_KHR)
#extension GL_KHR_cooperative_matrix : require
#define LEFT_MATRIX(m, k) coopmat<float16_t, gl_ScopeSubgroup, m, k, gl_MatrixUseA>
#define RIGHT_MATRIX(k, n) coopmat<float16_t, gl_ScopeSubgroup, k, n, gl_MatrixUseB>
#define SUM_MATRIX(m, n) coopmat<float, gl_ScopeSubgroup, m, n, gl_MatrixUseAccumulator>
#define LOAD_ROWS(matrix, from, at, stride) coopMatLoad(matrix, from, at, stride, gl_CooperativeMatrixLayoutRowMajor)
#define LOAD_COLUMNS(matrix, from, at, stride)                                                                         \
    coopMatLoad(matrix, from, at, stride, gl_CooperativeMatrixLayoutColumnMajor)
#define STORE_COLUMNS(matrix, to, at, stride)                                                                          \
    coopMatStore(matrix, to, at, stride, gl_CooperativeMatrixLayoutColumnMajor)
#define MULTIPLY_ADD coopMatMulAdd
#elif defined(COOPERATIVE_NV)
#extension GL_NV_cooperative_matrix : require
#define LEFT_MATRIX(m, k) fcoopmatNV<16, gl_ScopeSubgroup, m, k>
#define RIGHT_MATRIX(k, n) fcoopmatNV<16, gl_ScopeSubgroup, k, n>
#define SUM_MATRIX(m, n) fcoopmatNV<32, gl_ScopeSubgroup, m, n>
#define LOAD_ROWS(matrix, from, at, stride) coopMatLoadNV(matrix, from, at, stride, false)
#define LOAD_COLUMNS(matrix, from, at, stride) coopMatLoadNV(matrix, from, at, stride, true)
#define STORE_COLUMNS(matrix, to, at, stride) coopMatStoreNV(matrix, to, at, stride, true)
#define MULTIPLY_ADD coopMatMulAddNV
#else
#error "no extension chosen: define COOPERATIVE_KHR or COOPERATIVE_NV"
#endif
