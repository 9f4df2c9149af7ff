/* Asks the processor to bring a line of memory into its cache, for reading and writing. Any address is allowed. */
static inline void apnscope_prefetch(const void *address) { __builtin_prefetch(address, 1, 3); }
