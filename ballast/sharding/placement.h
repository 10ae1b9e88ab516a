// Documents on ranks, before it is written down as a plan: what hybrid, hybrid_dp and zeppelin fill.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "ballast/base/tournament.h"
#include "ballast/cost/cost_model.h"
#include "ballast/ir/shard_plan.h"

namespace ballast {

// Documents by falling length, those of no token left out; equal ones in order.
std::vector<std::size_t> longest_first(const std::vector<Tokens>& cu_seqlens);

// CostModel::layer_attention of documents; a length is asked for once where equal lengths follow.
class DocumentWork {
 public:
  explicit DocumentWork(const CostModel& cost) : cost_(cost) {}
  Seconds operator()(Tokens length) {
    if (length != last_length_) {
      last_length_ = length;
      last_ = cost_.layer_attention(length);
    }
    return last_;
  }

 private:
  const CostModel& cost_;
  Tokens last_length_ = -1;
  Seconds last_ = 0;
};

// Ranks that are being filled: load, and room for tokens.
class RankLoads {
 public:
  explicit RankLoads(const std::vector<Tokens>& room) : load_(room.size()), taken_(room.size()) {
    for (std::size_t r = 0; r < room.size(); ++r) taken_.set(r, -room[r]);
  }
  RankLoads(std::size_t ranks, Tokens capacity) : RankLoads(std::vector<Tokens>(ranks, capacity)) {}

  Seconds load(std::size_t rank) const { return load_[rank]; }
  Tokens room(std::size_t rank) const { return -taken_[rank]; }
  std::size_t least_loaded() const { return load_.least(); }
  std::size_t roomiest() const { return taken_.least(); }
  // The least loaded rank if the document fits, else the one with most room.
  std::size_t best_for(Tokens length) const { return room(least_loaded()) >= length ? least_loaded() : roomiest(); }
  void put(std::size_t rank, Tokens tokens, Seconds load) {
    taken_.set(rank, taken_[rank] + tokens);
    load_.set(rank, load_[rank] + load);
  }

 private:
  Tournament<Seconds> load_;
  Tournament<Tokens> taken_;  // less what it may hold: the least has most room
};

// Where every document goes.
class PlacedDocuments {
 public:
  explicit PlacedDocuments(std::size_t documents) : home_(documents, -1) {}

  void put_whole(std::size_t document, std::size_t rank) { home_[document] = static_cast<int>(rank); }
  // The tokens of each rank, in ring order.
  std::vector<Tokens> put_in_ring(std::size_t document, Tokens length, std::vector<int> ranks);
  // In pieces of any length on ranks in ring order, where chunks of one length do not fit.
  void put_in_pieces(std::size_t document, std::vector<std::pair<int, Tokens>> pieces) {
    pieces_.emplace(document, std::move(pieces));
  }

  ShardPlan plan(const char* name, const std::vector<Tokens>& cu_seqlens, int num_ranks, int ranks_per_node) const;

 private:
  std::vector<int> home_;  // by document; -1: in a ring or in pieces
  struct Ringed {
    std::vector<int> ranks;
    std::size_t longer = 0;  // chunk from which on they hold one token more
  };
  std::map<std::size_t, Ringed> ringed_;
  std::size_t longer_ = 0;
  std::map<std::size_t, std::vector<std::pair<int, Tokens>>> pieces_;
};

// What a rank may hold: `stated`, or twice an even share. Throws UserError where the ranks hold less than there is,
// saying by how many tokens.
Tokens rank_capacity(Tokens stated, const std::vector<Tokens>& cu_seqlens, int num_ranks);

}  // namespace ballast
