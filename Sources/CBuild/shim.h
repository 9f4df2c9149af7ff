/* The commit that apnscope is built of. Who builds gives the linker an object file with it (Scripts/prepare), and compiles
   nothing for it; without one the reference is weak, and stays null. */
extern const char apnscope_commit[] __attribute__((weak));

static inline const char *_Nullable apnscope_built_commit(void) { return apnscope_commit; }
