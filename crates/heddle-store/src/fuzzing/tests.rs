#[path = "../../../../fuzz/seeds.rs"]
mod seeds;

#[test]
fn seeds_and_their_mutations_hurt_no_reader() {
    seeds::check("resource_record", super::resource_record);
    seeds::check("log_manifest", super::log_manifest);
    seeds::check("log_segment", super::log_segment);
    seeds::check("log_damage", super::log_damage);
}
