//! Wire types, problem codes and the HTTP client of Palisade.
