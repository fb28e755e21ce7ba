//! Tries every sabotage, or one by name.
#![expect(clippy::print_stdout, reason = "an example prints")]

use palisade_lab::sabotage::{Sabotage, catch};

fn main() {
    let name = std::env::args().nth(1);
    for sabotage in Sabotage::ALL {
        if name.as_ref().is_some_and(|name| name != sabotage.name()) {
            continue;
        }
        match catch(*sabotage) {
            Some(caught) => println!("{sabotage}\n    {}\n    {}", caught.what, caught.replay),
            None => println!("{sabotage}\n    NOT NOTICED: {}", sabotage.what()),
        }
    }
}
