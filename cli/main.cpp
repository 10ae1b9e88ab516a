// ballast: one program, one verb a job. Exit 0: done; 1: the work failed or is infeasible; 2: the input is at fault.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "ballast/base/error.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  CLI::App app{"Ballast: trains language models on documents of any length, with every rank equally busy.", "ballast"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "ballast 0.1.0");
  ballast::cli::add_corpus(app);
  ballast::cli::add_compare(app);
  ballast::cli::add_report(app);
  ballast::cli::add_trace(app);
  ballast::cli::add_analyze(app);
  ballast::cli::add_pack(app);
  ballast::cli::add_shard(app);
  ballast::cli::add_simulate(app, {argv, argv + argc});
  ballast::cli::add_plan(app);
  ballast::cli::add_train(app, {argv, argv + argc});
  ballast::cli::add_profile(app);
  ballast::cli::add_calibrate(app);
  ballast::cli::add_explain(app);

  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "%s\n", ballast::cli::usage_error(app, error).c_str());
    return 2;
  } catch (const ballast::cli::ExitRequest& request) {
    return request.code;
  } catch (const ballast::UserError& error) {
    std::fprintf(stderr, "ballast: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ballast: %s\n", error.what());
    return 1;
  }
}
