//! The recipe book.

use axum::extract::State;
use palisade_api::wire::RecipeList;

use super::ok;
use crate::{app::App, edge::Params, problems::Reply};

/// `GET /v1/recipes`.
pub(crate) async fn list(State(app): State<App>, params: Params) -> Reply {
    params.finish("")?;
    Ok(ok(&RecipeList::of(&app.recipes)))
}
