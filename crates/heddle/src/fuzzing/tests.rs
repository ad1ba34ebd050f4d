#[path = "../../../../fuzz/seeds.rs"]
mod seeds;

#[test]
fn seeds_and_their_mutations_hurt_no_reader() {
    seeds::check("audit_line", super::audit_line);
    seeds::check_in(48, "backup_frames", super::backup_frames);
}
