use super::with_causes;

/// An error of a library that repeats its cause, or of one that does not.
#[derive(Debug, thiserror::Error)]
enum Layer {
    #[error("no route to the host")]
    Root,
    #[error("it cannot be reached: {0}")]
    Repeats(#[source] Box<Layer>),
    #[error("the blob cannot be read")]
    Plain(#[source] Box<Layer>),
}

#[test]
fn causes_are_said_once_though_errors_repeat_them() {
    let error = Layer::Repeats(Box::new(Layer::Repeats(Box::new(Layer::Root))));
    let error = Layer::Plain(Box::new(error));
    let said = "the blob cannot be read: it cannot be reached: it cannot be reached: no route to \
                the host";
    assert_eq!(with_causes(&error), said);
}

#[test]
fn causes_that_nobody_repeats_are_all_said() {
    let error = Layer::Plain(Box::new(Layer::Root));
    assert_eq!(with_causes(&error), "the blob cannot be read: no route to the host");
}
