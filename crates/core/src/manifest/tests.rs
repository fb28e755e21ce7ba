use super::*;

fn output(name: &str, bytes: &[u8]) -> Output {
    Output {
        name: name.parse().unwrap(),
        digest: Digest::of(bytes),
        size_bytes: bytes.len() as u64,
        media_type: "video/mp4".to_owned(),
        facts: BTreeMap::new(),
    }
}

fn manifest(names: &[&str]) -> Manifest {
    let outputs = names.iter().map(|name| output(name, name.as_bytes())).collect();
    Manifest { outputs, ..Manifest::default() }
}

#[track_caller]
fn check_refused(names: &[&str], value: &str, allowed: &str) {
    let refused = manifest(names).validate().unwrap_err();
    assert_eq!(refused.field, "manifest.outputs");
    assert_eq!((refused.value.as_str(), refused.allowed.as_str()), (value, allowed));
}

#[test]
fn a_manifest_lists_at_least_one_output_and_not_too_many() {
    check_refused(&[], "\"0\"", "must list 1 to 20000 outputs");
    let names: Vec<_> = (0..=limits::MANIFEST_OUTPUTS_MAX).map(|i| format!("{i}.ts")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    check_refused(&names, "\"20001\"", "must list 1 to 20000 outputs");
    manifest(&names[1..]).validate().unwrap();
}

#[test]
fn a_manifest_names_each_output_once() {
    check_refused(&["a", "b", "a"], "\"a\"", "must name each output once");
}

#[test]
fn a_manifest_can_be_laid_out_as_files() {
    let allowed = "must not name a file as it names another's folder";
    check_refused(&["a", "a/b"], "\"a\"", allowed);
    check_refused(&["a/b/c", "a-b", "a.b", "a/b"], "\"a/b\"", allowed);
    manifest(&["a-b", "a.b", "a/b", "a/c", "b/a", "aa"]).validate().unwrap();
}

#[test]
fn manifests_are_the_same_by_names_and_bytes_alone() {
    let one = manifest(&["a", "b"]);
    let mut other = manifest(&["b", "a"]);
    other.outputs[0].facts.insert("width".to_owned(), 1.into());
    other.provenance.toolchain = "another".to_owned();
    assert!(one.same_outputs(&other) && other.same_outputs(&one));

    other.outputs[0].digest = Digest::of(b"other bytes");
    assert!(!one.same_outputs(&other));
    assert!(!one.same_outputs(&manifest(&["a"])));
    assert!(!one.same_outputs(&manifest(&["a", "c"])));
}
