#include "tutti/cli/signals.h"

#include <csignal>
#include <thread>

#include "tutti/base/file.h"

namespace tutti::cli {

void end_cleanly_on_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&watched, number);  // nohup and shells' background jobs mean it
  }
  // Blocked here and in every thread to come; the watcher alone takes them, and may do what a signal handler may not.
  pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  std::thread([watched] {
    int number = 0;
    while (sigwait(&watched, &number) != 0) {
    }
    exit_discarding_outputs(128 + number);
  }).detach();
}

}  // namespace tutti::cli
