// Ctrl-C and SIGTERM as a wish to stop after the step. A rank asks for it between steps and agrees with the others.
#pragma once

namespace ballast {

// From now on SIGINT and SIGTERM set a flag instead of ending the process. The launcher starts ranks with both blocked,
// so none that comes early is lost: this unblocks them. Call once, on the main thread.
void install_stop_signal();

bool stop_requested();

}  // namespace ballast
