#include "tutti/cli/signals.h"

#include <csignal>
#include <system_error>
#include <thread>

#include "tutti/base/file.h"

namespace tutti::cli {

namespace {

std::atomic<bool> gentle = false, stop_asked = false;
std::atomic<int> stop_signal = 0;

}  // namespace

void end_cleanly_on_signals() {
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of whoever writes it
  sigset_t watched;
  sigemptyset(&watched);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&watched, number);  // nohup and shells' background jobs mean it
  }
  // Blocked here and in every thread to come; the watcher alone takes them, and may do what a signal handler may not.
  pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  const auto watch = [watched] {
    for (;;) {
      int number = 0;
      if (sigwait(&watched, &number) != 0) continue;
      if (!gentle || stop_asked) exit_discarding_outputs(128 + number);
      stop_signal = number;
      stop_asked = true;
    }
  };
  try {
    std::thread(watch).detach();
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_UNBLOCK, &watched, nullptr);  // no thread is to be had: they end the process as they always do
  }
}

GentleStop::GentleStop() { gentle = true; }

GentleStop::~GentleStop() { gentle = false; }

const std::atomic<bool>& GentleStop::asked() const { return stop_asked; }

int GentleStop::exit_code() const { return 128 + stop_signal; }

}  // namespace tutti::cli
