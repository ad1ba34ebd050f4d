#[path = "../../../../fuzz/seeds.rs"]
mod seeds;

#[test]
fn seeds_and_their_mutations_hurt_no_reader() {
    seeds::check("kube_patch", super::patch);
    seeds::check("kube_selector", super::selector);
    seeds::check("kube_request", super::request);
    seeds::check("kube_document", super::document);
    seeds::check("kube_protobuf", super::protobuf);
}
