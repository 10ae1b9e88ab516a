"""Training on emulated clusters: rings, routed messages and moves over slow cards, to the losses of one rank."""

import re
import time

import emulated
import pytest
from emulated import TWO_BY_TWO
from rank_processes import ends
from refusal import assert_refused

# A packer that weighs documents would pack by another cost than the emulated one.
EXACT = dict(training__precision="float64", training__steps=2, packing__packer="plain")


@pytest.mark.parametrize("strategy, kind", [("ring", "RING_KV"), ("zeppelin", "REMAP")])
def test_trains_over_routed_messages_to_the_losses_of_one_rank(training, strategy, kind):
    assert training(run__folder="one", **EXACT).returncode == 0
    done = emulated.run(TWO_BY_TWO, training.folder, training.command(
        "--emulate", TWO_BY_TWO, run__folder="emulated", parallel__cp=4, sharding__strategy=strategy, **EXACT))
    assert done.returncode == 0, done.stderr
    assert training.losses("emulated") == pytest.approx(training.losses("one"), rel=1e-9)
    assert all(step["predicted_step_seconds"] > 0 for step in training.metrics("emulated"))
    assert kind in training.span_kinds("emulated")
    passed_on = re.search(r"rank 0 passed on (\d+) bytes of others' messages", done.stderr)
    assert passed_on and int(passed_on[1]) > 0, done.stderr  # messages went over more than one proxy


def test_a_slower_card_is_predicted_to_cost_time(training):
    slow_card = emulated.changed(training.folder, "slow.toml", card_rates="[200e6, 50e6]")
    for name, file in [("even", TWO_BY_TWO), ("uneven", slow_card)]:
        done = emulated.run(file, training.folder, training.command(
            "--emulate", file, run__folder=name, parallel__cp=4, sharding__strategy="ring", **EXACT))
        assert done.returncode == 0, done.stderr
    assert training.losses("uneven") == pytest.approx(training.losses("even"), rel=1e-12)
    seconds = {name: sum(step["predicted_step_seconds"] for step in training.metrics(name)) for name in ["even", "uneven"]}
    assert seconds["uneven"] > 1.1 * seconds["even"]


@pytest.mark.parametrize("nodes, ranks", [(1, 2), (1, 1), (3, 1)])
def test_trains_on_one_node_one_rank_in_all_and_nodes_of_one_rank(training, nodes, ranks):
    file = emulated.changed(training.folder, "shape.toml", nodes=nodes, ranks_per_node=ranks, cards_per_node=1)
    assert training(run__folder="one", **EXACT).returncode == 0
    done = emulated.run(file, training.folder, training.command(
        "--emulate", file, run__folder="emulated", parallel__cp=nodes * ranks, sharding__strategy="zeppelin", **EXACT))
    assert done.returncode == 0, done.stderr
    assert training.losses("emulated") == pytest.approx(training.losses("one"), rel=1e-9)


def test_a_proxy_killed_in_mid_ring_ends_all_within_the_time_out_naming_it(training):
    command = training.command("--emulate", TWO_BY_TWO, parallel__cp=4, sharding__strategy="ring", training__steps=100000,
                               launch__timeout_seconds=10)
    with emulated.unwatched(TWO_BY_TWO, training.folder, command) as ranks:
        training.wait_for_steps(2)
        ranks[3].kill()  # a proxy of what rank 1 sends rank 2
        killed = time.monotonic()
        ended = ends(ranks, 60)
        assert time.monotonic() - killed < 15
    for code, errors in ended[:3]:
        assert code == 1, ended
        assert len(errors.splitlines()) == 1, ended
        assert re.search(r"(lost|and|from) ranks? ([0-9, ]*, )?3\b", errors), ended


def test_refuses_a_cluster_of_other_ranks_or_without_a_card(training, ballast):
    assert_refused(training("--emulate", TWO_BY_TWO, parallel__cp=2), "nodes x ranks_per_node = 4, the run has 2 ranks")
    bare = emulated.changed(training.folder, "bare.toml", cards_per_node=0)
    assert_refused(training("--emulate", bare, parallel__cp=4), "cards_per_node = 0: a node needs a network card")
    asked = ["--emulate", TWO_BY_TWO, "--model", training.folder / "run.toml"]
    assert_refused(ballast("explain", "placement", "--lengths", "64,32", "--cp", 8, *asked), "= 4 ranks, 8 are asked for")
    assert ballast("explain", "zones", "--quiet", *asked).returncode == 0


@pytest.mark.parametrize("rates, fault", [
    ("[]", "card_rates: 0 rates for 2 cards of a node; leave the key out"),
    ("[1e8]", "card_rates: 1 rates for 2 cards of a node; leave the key out"),
    ('"fast"', "card_rates: must be a list of numbers"),
])
def test_the_wiring_refuses_card_rates_as_the_trainer_does(training, rates, fault):
    file = emulated.changed(training.folder, "rates.toml", card_rates=rates)
    assert_refused(training("--emulate", file, parallel__cp=4), fault)
    assert_refused(emulated.run(file, training.folder, ["true"]), fault)
