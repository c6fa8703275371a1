//! The stand-in model as a program, for real agents started by hand: `stand-in-model [PORT]`.
//!
//! Prints its address and runs until it is killed. `testkit::model` describes its behaviour.

#![expect(
    clippy::print_stdout,
    reason = "the address is the output of this program"
)]

use testkit::model::StandInModel;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let port = std::env::args().nth(1);
    let port = port.map_or(Ok(0), |word| word.parse())?;
    let model = StandInModel::start(port).await?;
    println!("{}", model.url());
    model.serve().await;
    Ok(())
}
