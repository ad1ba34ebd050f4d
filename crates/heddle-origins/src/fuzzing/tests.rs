#[path = "../../../../fuzz/seeds.rs"]
mod seeds;

#[test]
fn seeds_and_their_mutations_hurt_no_reader() {
    seeds::check("nats_line", super::nats_line);
    seeds::check("jetstream_answer", super::jetstream_answer);
    seeds::check("stan_message", super::stan_message);
    seeds::check("stan_monitoring", super::stan_monitoring);
    seeds::check("recorded_line", super::recorded_line);
}
