// One training step of one rank, again and again: forward, backward, clipping and AdamW of the model code that `ballast
// train` runs, without loading data and without planning. eager_pytorch.py drives it and interleaves it with its own.
//
//   bench_trainer_step MODEL PRECISION LENGTH,LENGTH,...
//
// For every line on standard input it runs a step on the documents of these lengths and prints "SECONDS LOSS".
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "ballast/runtime/attention/engine.h"
#include "ballast/runtime/comm/solo.h"
#include "ballast/runtime/model/stage.h"
#include "ballast/runtime/train/adamw.h"
#include "ballast/runtime/train/allocator.h"

namespace ballast {
namespace {

struct Batch {
  ShardPlan plan{"whole", {0}, {{}}};
  at::Tensor tokens, positions, labels;
};

// Tokens of a linear congruence, so that both sides see the same; labels are the next token of the document.
Batch make_batch(const std::string& lengths, int vocab_size) {
  Batch batch;
  std::istringstream list(lengths);
  for (std::string length; std::getline(list, length, ',');) {
    batch.plan.cu_seqlens.push_back(batch.plan.cu_seqlens.back() + std::stoll(length));
  }
  const Tokens tokens = batch.plan.num_tokens();
  batch.plan.ranges[0] = {{0, tokens}};
  batch.tokens = at::arange(tokens, at::kLong).mul(7919).remainder(10007).remainder(vocab_size);
  batch.positions = at::tensor(at::ArrayRef<Tokens>(batch.plan.local_positions(0)), at::kLong);
  batch.labels = batch.tokens.roll(-1);
  for (std::size_t d = 1; d < batch.plan.cu_seqlens.size(); ++d)
    batch.labels[batch.plan.cu_seqlens[d] - 1] = kIgnoredLabel;
  return batch;
}

int run(const std::string& preset, const std::string& precision_name, const std::string& lengths) {
  const ModelSpec model = model_preset(preset).value();
  const Precision precision = precision_name == "bfloat16" ? Precision::bfloat16 : Precision::float32;
  const auto layers = stage_layers({model.num_layers});
  const TrainingSpec training;
  ParameterSet parameters(model, layers, precision, 1);
  const Stage stage(model, layers[0], parameters);
  AdamW optimizer(parameters, training);
  const Batch batch = make_batch(lengths, model.vocab_size);
  const double labels = (batch.labels != kIgnoredLabel).sum().item<double>();
  const auto cp = make_solo_communicator("cp");
  RankHooks hooks;
  SpanRecorder recorder(0, std::chrono::steady_clock::now(), hooks);

  for (std::string line; std::getline(std::cin, line);) {
    const Seconds begin = recorder.now();
    parameters.zero_gradients();
    const ContextAttention attention(batch.plan, {*cp, recorder, hooks, 0, 0});
    const at::Tensor loss = stage.loss(stage.forward(batch.tokens, batch.positions, attention), batch.labels);
    torch::autograd::backward({loss}, {at::full_like(loss, 1.0 / labels)});
    const double norm = std::sqrt(parameters.squared_gradient_norm());
    optimizer.step(training.lr, clip_scale(norm, training.clip_norm));
    recorder.take();
    std::printf("%.6f %.6f\n", recorder.now() - begin, loss.item<double>() / labels);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace ballast

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: bench_trainer_step MODEL PRECISION LENGTH,LENGTH,...\n", stderr);
    return 2;
  }
  ballast::configure_allocator();
  at::set_num_threads(1);
  return ballast::run(argv[1], argv[2], argv[3]);
}
