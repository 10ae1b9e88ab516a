#include "ballast/runtime/comm/solo.h"

#include <ATen/ATen.h>

#include <utility>

#include "ballast/base/error.h"

namespace ballast {
namespace {

class SoloCommunicator final : public Communicator {
 public:
  explicit SoloCommunicator(std::string name) : name_(std::move(name)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& name() const override { return name_; }

  void all_reduce(at::Tensor /*tensor*/, ReduceOp /*op*/) override {}
  void broadcast(at::Tensor /*tensor*/, int /*root*/) override {}
  at::Tensor all_gather_rows(const at::Tensor& local_RX, const std::vector<std::int64_t>& rows) override {
    check_rows(local_RX, rows);
    return local_RX.detach();
  }
  at::Tensor reduce_scatter_rows(const at::Tensor& full_RX, const std::vector<std::int64_t>& rows) override {
    check_rows(full_RX, rows);
    return full_RX.detach();
  }
  std::unique_ptr<Transfer> send(const at::Tensor& /*tensor*/, int /*to*/, std::uint32_t /*tag*/) override {
    BALLAST_ASSERT(false, "a group of one has nobody to send to");
    return nullptr;
  }
  std::unique_ptr<Transfer> receive(at::Tensor /*tensor*/, int /*from*/, std::uint32_t /*tag*/) override {
    BALLAST_ASSERT(false, "a group of one has nobody to receive from");
    return nullptr;
  }
  void barrier() override {}

 private:
  static void check_rows(const at::Tensor& tensor, const std::vector<std::int64_t>& rows) {
    BALLAST_ASSERT(rows.size() == 1 && tensor.dim() > 0 && tensor.size(0) == rows[0], "rows: one count a rank");
  }

  std::string name_;
};

}  // namespace

std::unique_ptr<Communicator> make_solo_communicator(std::string name) {
  return std::make_unique<SoloCommunicator>(std::move(name));
}

}  // namespace ballast
