#[path = "../../../../fuzz/seeds.rs"]
mod seeds;

#[test]
fn seeds_and_their_mutations_hurt_no_reader() {
    seeds::check("osb_body", super::request_body);
    seeds::check("osb_request", super::request_line);
}
