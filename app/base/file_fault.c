#include "app/base/file_fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/base/clean.h"

static char message[512]; // formatted in advance: a signal handler must not call printf
static atomic_flag installed = ATOMIC_FLAG_INIT;

// The signal comes from the kernel, or from the terminal's handler, which raises it again on the same thread.
static void fault_signal(int signal_number, siginfo_t *info, void *context) {
    (void)context;
    if (info->si_code == BUS_ADRERR || (info->si_code == SI_TKILL && info->si_pid == getpid())) {
        ssize_t ignored = write(STDERR_FILENO, message, strlen(message));
        (void)ignored;
        _exit(EXIT_FAILURE);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void file_fault_watch(const char *path) {
    char *shown = clean_copy(path ? path : "a file");
    snprintf(message, sizeof message, "confab: %.400s: cannot read: the file changed while in use\n", shown);
    free(shown);
    if (atomic_flag_test_and_set(&installed)) return; // the terminal's handler may have been installed over ours
    struct sigaction action = {.sa_sigaction = fault_signal, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
