#[path = "../../../../fuzz/seeds.rs"]
mod seeds;

#[test]
fn seeds_and_their_mutations_hurt_no_reader() {
    seeds::check("attribute", super::attribute);
    seeds::check("legacy_publish", super::legacy_publish);
    seeds::check("filter", super::filters);
    seeds::check("delivery_answer", super::answer);
    seeds::check("answer_headers", super::answer_headers);
    seeds::check("segment_hints", super::segment_hints);
}
