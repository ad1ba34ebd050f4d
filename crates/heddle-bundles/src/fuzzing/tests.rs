#[path = "../../../../fuzz/seeds.rs"]
mod seeds;

#[test]
fn seeds_and_their_mutations_hurt_no_reader() {
    seeds::check("image_manifest", super::image_manifest);
    seeds::check("bundle_label", super::bundle_label);
    seeds::check("chart_index", super::chart_index);
    seeds::check("registry_answer", super::registry_answer);
    seeds::check("proxy_head", super::proxy_head);
    let home = tempfile::tempdir().unwrap();
    seeds::check_in(12, "image_layer", |soup| super::layer(soup, home.path()));
}
