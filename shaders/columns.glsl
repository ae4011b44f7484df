// For shaders that compute up to eight columns at once, each with a sum of its own name: sum0 … sum7. In arrays that loops
// go through drivers keep such sums in memory, if the loops' ends are specialisation constants.
#define EACH_COLUMN(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7)
